"""Following a stream from a chosen start, for ever, without gaps or repetitions.

A follower is an ordered consumer: an ephemeral one that is rebuilt behind the last message seen
whenever the server lost it, a message of it is missing, or the connection was cut or silent, and
from the start when the stream itself was made anew. Folding
last-per-subject facts, watching a bucket, tapping history and replaying it are all this.
"""

import asyncio
import contextlib
import logging
import secrets
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_shared.bus.connection import Connection
from inferbus_shared.bus.jetstream import STREAM_NOT_FOUND, JetStreamError, api
from inferbus_shared.bus.messages import Delivered, delivered
from inferbus_shared.bus.pull import ConsumerGoneError, LongPoll

log = logging.getLogger("inferbus.bus")

BATCH = 256
INACTIVE_SECONDS = 120.0
RETRY_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Start:
    """Where a follower starts."""

    policy: dict[str, Any] = field(default_factory=lambda: {"deliver_policy": "all"})

    @classmethod
    def last_per_subject(cls) -> "Start":
        """The newest message of every subject, then everything new."""
        return cls({"deliver_policy": "last_per_subject"})

    @classmethod
    def everything(cls) -> "Start":
        """From the first message kept."""
        return cls()

    @classmethod
    def new(cls) -> "Start":
        """Only what is stored from now on."""
        return cls({"deliver_policy": "new"})

    @classmethod
    def sequence(cls, first: int) -> "Start":
        """From one sequence on, that one included."""
        return cls({"deliver_policy": "by_start_sequence", "opt_start_seq": max(first, 1)})

    @classmethod
    def time(cls, real_ms: int) -> "Start":
        """What was stored at or after a real time, milliseconds since 1970."""
        moment = datetime.fromtimestamp(real_ms / 1000, UTC)
        return cls({"deliver_policy": "by_start_time", "opt_start_time": moment.isoformat()})


class Follower:
    """One followed filter of one stream."""

    def __init__(
        self,
        connection: Connection,
        stream: str,
        filter_: str,
        start: Start,
        *,
        on_restart: Callable[[], None] = lambda: None,
        heartbeat_seconds: float | None = None,
    ) -> None:
        """`on_restart` is called when everything will be delivered from the start again.

        The server proves that often that it is still there (`pull.HEARTBEAT_SECONDS` unless told);
        after 2.5 times as long without a sign the consumer is rebuilt.
        """
        self._connection = connection
        self._stream = stream
        self._filter = filter_
        self._start = start
        self._on_restart = on_restart
        self._heartbeat_seconds = heartbeat_seconds
        self._poll: LongPoll | None = None
        self._begin_anew = False
        self._created = ""
        self._last_sequence = 0
        self._initial: int | None = None
        self._caught_up = asyncio.Event()

    async def caught_up(self) -> None:
        """Wait until everything that stood in the stream at the start has been handled."""
        await self._caught_up.wait()

    @property
    def is_caught_up(self) -> bool:
        """Whether everything that stood there at the start has been handled."""
        return self._caught_up.is_set()

    async def snapshot(self) -> AsyncIterator[Delivered]:
        """What stood in the stream at the start, and then an end."""
        messages = self.messages(stop_when_caught_up=True)
        async with contextlib.aclosing(messages):
            async for message in messages:
                yield message

    async def messages(self, stop_when_caught_up: bool = False) -> AsyncGenerator[Delivered, None]:
        """Every message from the start on; a message counts as handled when the next is asked for.

        Raises `ProblemsError` when the stream doesn't exist.
        """
        while True:
            consumer = await self._create()
            poll = self._poll = self._poll_of(consumer)
            handed_out = 0
            try:
                while True:
                    if self._initial is not None and self._initial <= 0:
                        self._caught_up.set()
                        if stop_when_caught_up:
                            return
                    message = delivered(await poll.next())
                    handed_out += 1
                    if message.consumer_sequence != handed_out:
                        raise ConsumerGoneError("a message is missing")
                    if message.sequence <= self._last_sequence:
                        continue
                    yield message
                    self._last_sequence = message.sequence
                    if self._initial is not None:
                        self._initial = min(self._initial - 1, message.pending)
            except ConsumerGoneError as gone:
                log.info(
                    "following anew", extra={"stream": self._stream, "reason": str(gone) or "gone"}
                )
            finally:
                await poll.close()

    def restart(self) -> None:
        """Deliver everything from the start again, as soon as the server hands it out."""
        self._begin_anew = True
        if self._poll is not None:
            self._poll.give_up()

    def _poll_of(self, consumer: str) -> LongPoll:
        return LongPoll(
            self._connection,
            self._stream,
            consumer,
            BATCH,
            ordered=True,
            heartbeat_seconds=self._heartbeat_seconds,
        )

    async def _create(self) -> str:
        """A new consumer behind the last message seen; returns its name."""
        while True:
            name = f"{self._connection.service.value}-{secrets.token_hex(6)}"
            try:
                last, created = await self._stored()
                is_another = self._created not in ("", created)
                self._created = created
                if is_another or last < self._last_sequence or self._begin_anew:
                    self._begin_anew = False
                    self._last_sequence = 0
                    self._on_restart()
                if self._start == Start.new() and self._initial is None:
                    self._last_sequence = last
                resumed = Start.sequence(self._last_sequence + 1)
                policy = resumed.policy if self._last_sequence else self._start.policy
                answer = await api(
                    self._connection,
                    f"CONSUMER.CREATE.{self._stream}.{name}.{self._filter}",
                    {"stream_name": self._stream, "config": self._config(name) | policy},
                )
            except JetStreamError as error:
                if error.code == STREAM_NOT_FOUND and not self._caught_up.is_set():
                    raise ProblemsError(_missing(self._stream)) from error
                log.warning("cannot follow yet", extra={"error": str(error)})
            except ProblemsError as error:
                log.warning("cannot follow yet", extra={"error": str(error)})
            else:
                if self._initial is None:
                    self._initial = int(answer["num_pending"])
                return name
            await asyncio.sleep(RETRY_SECONDS)

    async def _stored(self) -> tuple[int, str]:
        """The last sequence of the stream, and when it was made."""
        info = await api(self._connection, f"STREAM.INFO.{self._stream}")
        return int(info["state"]["last_seq"]), str(info["created"])

    def _config(self, name: str) -> dict[str, Any]:
        return {
            "name": name,
            "filter_subject": self._filter,
            "ack_policy": "none",
            "mem_storage": True,
            "num_replicas": 1,
            "inactive_threshold": int(INACTIVE_SECONDS * 1e9),
        }


def _missing(stream: str) -> Problem:
    return Problem(
        code=ErrorCode.TOPOLOGY_MISSING,
        message=f"stream {stream} does not exist",
        remedy="run `inferbus provision` against this NATS server",
    )
