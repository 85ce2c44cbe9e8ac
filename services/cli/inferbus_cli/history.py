"""Which part of the log is meant, and reading it in order of time."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from typing import Self

from inferbus_cli.merge import merged
from inferbus_cli.reading import Read, standing
from inferbus_cli.targets import ANYTHING, EVERYTHING, TargetFilter
from inferbus_contracts.catalog import EVENTS, Stream
from inferbus_contracts.envelope import parse_time
from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_contracts.subjects import ROOT
from inferbus_contracts.topology import DEAD_LETTER_ROOT, DEAD_LETTERS, INBOX_EVENTS, inbox_stream
from inferbus_shared.bus.bus import Bus
from inferbus_shared.bus.follow import Follower, Start

_WHOLE = {
    **dict.fromkeys(map(str, Stream), EVERYTHING),
    DEAD_LETTERS: f"{DEAD_LETTER_ROOT}.>",
    **{inbox_stream(service): f"inbox.{service.value}.>" for service in INBOX_EVENTS},
}
"""The streams that can be read, and the filter for all of each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A part of the log."""

    streams: tuple[str, ...]
    subject: str = ""
    """A filter; empty for everything in the streams, as far as `target` narrows it."""
    target: TargetFilter = ANYTHING
    from_ms: int | None = None
    """Virtual time, as `to_ms`; None: from the beginning."""
    to_ms: int | None = None
    sequences: tuple[int, int] | None = None
    """First and last sequence, both included."""

    def last(self, now_ms: int, seconds: float) -> Self:
        """The same part, of the last virtual seconds alone."""
        return replace(self, from_ms=now_ms - round(seconds * 1000))

    async def read(self, bus: Bus) -> AsyncIterator[Read]:
        """What the part holds at the moment, oldest first."""
        sources = [self._source(bus, stream) for stream in self.streams]
        async for read in merged(sources, lambda read: read.message.stamp_ms):
            yield read

    async def _source(self, bus: Bus, stream: str) -> AsyncIterator[Read]:
        follower = Follower(bus.connection, stream, self._filter(stream), self._start(bus))
        async for read in standing(bus, follower):
            if self.sequences and read.message.sequence > self.sequences[1]:
                return
            if self._holds(read):
                yield read

    def _filter(self, stream: str) -> str:
        if self.subject:
            return self.subject
        narrowed = self.target.subject()
        return narrowed if _WHOLE[stream] == EVERYTHING else _WHOLE[stream]

    def _start(self, bus: Bus) -> Start:
        if self.sequences:
            return Start.sequence(self.sequences[0])
        if self.from_ms is not None:
            return Start.time(bus.clock.anchor.to_real(self.from_ms))
        return Start.everything()

    def _holds(self, read: Read) -> bool:
        if read.event is None:
            return self.target == ANYTHING
        late = self.to_ms is not None and read.event.time_ms > self.to_ms
        return self.target.fits(read.event.key) and not late


def streams_of(stream: str | None, subject: str) -> tuple[str, ...]:
    """The streams to read: the one that is named, that of the subject's type, or all of them.

    Raises `ProblemsError` when there is no such stream.
    """
    if stream is not None:
        if stream.upper() not in _WHOLE:
            raise ProblemsError(
                Problem(
                    code=ErrorCode.BAD_ARGUMENT,
                    message="there is no such stream",
                    field="--stream",
                    value=stream,
                    remedy=f"name one of {', '.join(_WHOLE)}",
                )
            )
        return (stream.upper(),)
    if subject.startswith(f"{DEAD_LETTER_ROOT}."):
        return (DEAD_LETTERS,)
    type_ = ".".join(subject.removeprefix(f"{ROOT}.").split(".")[:2])
    spec = EVENTS.get(type_)
    return (str(spec.stream),) if spec else tuple(map(str, Stream))


def read_sequences(text: str) -> tuple[int, int]:
    """`A..B`, both included; a side may be left out. Raises `ProblemsError` for anything else."""
    first, dots, last = text.partition("..")
    sides = (first or "1", last or str(2**53))
    if dots and all(side.isdecimal() for side in sides) and int(sides[0]) <= int(sides[1]):
        return int(sides[0]), int(sides[1])
    raise ProblemsError(
        Problem(
            code=ErrorCode.BAD_ARGUMENT,
            message="this is no range of sequences",
            field="--sequence",
            value=text,
            remedy="write FIRST..LAST, e.g. 100..250",
        )
    )


def read_moment(option: str, text: str) -> int:
    """Virtual milliseconds of an RFC 3339 time; raises `ProblemsError` naming the option."""
    try:
        return parse_time(text if _has_zone(text) else f"{text}Z")
    except ValueError:
        raise ProblemsError(
            Problem(
                code=ErrorCode.BAD_ARGUMENT,
                message="this is no time",
                field=option,
                value=text,
                remedy="write it like 2026-11-20T13:05:00Z; without a zone it is UTC",
            )
        ) from None


def _has_zone(text: str) -> bool:
    return text.endswith(("Z", "z")) or "+" in text or text.count("-") > 2


def one_stream(streams: Sequence[str]) -> None:
    """Raise `ProblemsError` unless there is one: sequences count in each stream for itself."""
    if len(streams) != 1:
        raise ProblemsError(
            Problem(
                code=ErrorCode.BAD_ARGUMENT,
                message="sequences count in each stream for itself",
                field="--sequence",
                remedy="name the stream with --stream, e.g. --stream DECISIONS",
            )
        )
