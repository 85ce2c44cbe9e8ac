"""What becomes of an event whose handler doesn't simply succeed.

A handler returns: acknowledged. It raises `Retry`: delivered again after the delay, and the line
behind it waits; so it does while the bus itself is away, silent or full. It raises `Reject`: to
the dead letters with the reason. Anything else is a bug: to the dead letters with its traceback,
and the stream goes on. There is no other way.
"""

import asyncio
import contextlib
import traceback
from collections.abc import AsyncIterator
from dataclasses import dataclass

from nats.aio.msg import Msg

from inferbus_contracts.errors import ErrorCode, ProblemsError
from inferbus_contracts.services import Service
from inferbus_contracts.topology import ACK_WAIT_SECONDS, DEAD_LETTER_ROOT, MAX_DELIVER
from inferbus_shared.bus.messages import Delivered, Outgoing

MAX_RETRIES = MAX_DELIVER - 2
"""After that many retries an event goes to the dead letters; the server's own limit is beyond."""

LONGEST_DELAY_SECONDS = 60.0

_MAX_REASON = 4_000

_OF_THE_BUS = frozenset({ErrorCode.BUS_UNREACHABLE, ErrorCode.BUS_TIMEOUT, ErrorCode.BUS_FULL})


class Retry(Exception):  # noqa: N818 - a word of the acknowledgement vocabulary
    """Try again later."""

    def __init__(self, delay_seconds: float, reason: str) -> None:
        super().__init__(reason)
        self.delay_seconds = delay_seconds


class Reject(Exception):  # noqa: N818
    """The event can never be handled."""


@dataclass(frozen=True, slots=True)
class Again:
    """Deliver it again after that many seconds."""

    delay_seconds: float


@dataclass(frozen=True, slots=True)
class Dead:
    """Put it aside, with the reason."""

    reason: str


def fate_of(error: Exception, deliveries: int) -> Again | Dead:
    """What becomes of an event whose handler raised, at its n-th delivery (from 1)."""
    delay_seconds = _delay_seconds(error, deliveries)
    if delay_seconds is not None:
        if deliveries <= MAX_RETRIES:
            return Again(delay_seconds)
        return Dead(f"given up after {deliveries} deliveries: {error}")
    if isinstance(error, Reject | ProblemsError):
        return Dead(str(error))
    return Dead("".join(traceback.format_exception(error)))


def _delay_seconds(error: Exception, deliveries: int) -> float | None:
    """How long to wait before the next delivery; None where there is to be none.

    Six minutes together where the bus is at fault: a full disk is freed by hand.
    """
    if isinstance(error, Retry):
        return error.delay_seconds
    if is_transient(error):
        return min(2.0**deliveries, LONGEST_DELAY_SECONDS)
    return None


def is_transient(error: Exception) -> bool:
    """Whether nothing is wrong with an event: the bus was away, silent or full meanwhile."""
    return isinstance(error, ProblemsError) and all(
        problem.code in _OF_THE_BUS for problem in error.problems
    )


def dead_letter(service: Service, message: Delivered, reason: str, consumer: str) -> Outgoing:
    """The dead letter of an event: its own headers and body, the reason, and where it stood."""
    own = {name: value for name, value in message.headers.items() if name.startswith("ce-")}
    shown = reason if len(reason) <= _MAX_REASON else f"…{reason[-_MAX_REASON:]}"
    return Outgoing(
        f"{DEAD_LETTER_ROOT}.{service.value}.{message.subject}",
        message.data,
        own
        | {
            "inferbus-reason": shown.replace("\n", " ⏎ "),
            "inferbus-stream": message.stream,
            "inferbus-sequence": str(message.sequence),
            "inferbus-consumer": consumer,
            "Nats-Msg-Id": f"dlq-{_origin(message)}-{consumer}",
        },
    )


def _origin(message: Delivered) -> str:
    """Where an event was stored first: a copy of it in another stream is the same event."""
    source = message.headers.get("Nats-Stream-Source", "").split(" ")
    stream, sequence = source[:2] if len(source) > 1 else (message.stream, message.sequence)
    return f"{stream}-{sequence}"


@contextlib.asynccontextmanager
async def working(message: Msg) -> AsyncIterator[None]:
    """Tell the server, while the block runs, that the event is being worked on."""

    async def beat() -> None:
        while True:
            await asyncio.sleep(ACK_WAIT_SECONDS / 3)
            await message.in_progress()

    beating = asyncio.ensure_future(beat())
    try:
        yield
    finally:
        beating.cancel()
