"""What a service does with events: write those it owns, read those it follows, ask its neighbours.

One object per service instance. Whatever is written here carries the envelope with deterministic
ids and the causes copied from what it follows from.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from typing import TypeVar

import nats.errors

from inferbus_contracts.api.objects import Reply
from inferbus_contracts.base import EventData
from inferbus_contracts.catalog import EVENTS, Stream
from inferbus_contracts.envelope import Envelope, event_id, format_time
from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.services import Service
from inferbus_contracts.subjects import subject, wildcard
from inferbus_contracts.topology import FACTS_LAST
from inferbus_shared.bus.bucket import Bucket
from inferbus_shared.bus.connection import Connection
from inferbus_shared.bus.direct import last_message
from inferbus_shared.bus.fate import dead_letter, is_transient
from inferbus_shared.bus.follow import Follower, Start
from inferbus_shared.bus.messages import (
    SCHEDULE,
    Delivered,
    Outgoing,
    Received,
    decode,
    encode,
)
from inferbus_shared.bus.payloads import externalise, internalise
from inferbus_shared.bus.store import Stored, UnknownOutcomeError, store, store_together
from inferbus_shared.clock import Clock

log = logging.getLogger("inferbus.bus")

ReplyT = TypeVar("ReplyT", bound=Reply)

ASK_SECONDS = 10.0
PUBLISH_SECONDS = 30.0
ASK_AGAIN_SECONDS = 0.25
READ_ATTEMPTS = 5

WOKEN_SECONDS = 3600
"""How long a fired timer stays in its stream; the inbox that sources it keeps it longer."""


class Bus:
    """The bus as one service instance sees it."""

    def __init__(self, connection: Connection, clock: Clock) -> None:
        self.connection = connection
        self.clock = clock

    @property
    def service(self) -> Service:
        """Whose view this is."""
        return self.connection.service

    def event(
        self,
        data: EventData,
        key: ObjectKey,
        *,
        event_type: str = "",
        id: str = "",  # noqa: A002 - the CloudEvents attribute's name
        cause: Received[EventData] | None = None,
        causation_id: str = "",
        ordinal: int = 0,
        time_ms: int | None = None,
    ) -> Outgoing:
        """The message of an event that this service writes.

        Without `id` it is derived from `cause`, the n-th (`ordinal`) event of its type and key that
        follows from it. Raises `ValueError` when neither is given or the type isn't this service's.
        """
        type_ = event_type or data.event_type
        if EVENTS[type_].writer is not self.service:
            raise ValueError(f"{self.service.value} does not write {type_}")
        if not id:
            if cause is None:
                raise ValueError("an event needs an id or a cause")
            id = event_id(type_, key, cause.id, ordinal)  # noqa: A001
        envelope = Envelope(
            id=id,
            type=type_,
            source=f"{self.service.value}/{self.connection.settings.instance}",
            time_ms=self.clock.now_ms() if time_ms is None else time_ms,
            key=key,
            correlation_id=(cause.envelope.correlation_id or cause.id) if cause else "",
            causation_id=cause.id if cause else causation_id,
            traceparent=cause.envelope.traceparent if cause else "",
        )
        return encode(envelope, data)

    async def publish(self, message: Outgoing) -> Stored:
        """Store one event.

        Without an answer it is stored again under the same id, which the server takes for the same
        message, for half a minute. Raises `ProblemsError` when the bus refuses it or stays silent.
        """
        message = await externalise(self.connection, message)
        deadline = asyncio.get_running_loop().time() + PUBLISH_SECONDS
        while True:
            try:
                return await store(self.connection, message)
            except UnknownOutcomeError:
                if asyncio.get_running_loop().time() > deadline:
                    raise
                await asyncio.sleep(ASK_AGAIN_SECONDS)

    async def commit(self, messages: Sequence[Outgoing]) -> Stored:
        """Store several messages of one stream atomically, see `store_together`."""
        return await store_together(
            self.connection, [await externalise(self.connection, item) for item in messages]
        )

    def follow(
        self,
        event_type: str,
        start: Start | None = None,
        *,
        kind: str = "*",
        namespace: str = "*",
        on_restart: Callable[[], None] = lambda: None,
        heartbeat_seconds: float | None = None,
    ) -> Follower:
        """The events of a type; from the last of each key unless `start` says otherwise.

        The last two are a `Follower`'s.
        """
        stream: str = EVENTS[event_type].stream
        if start is None and stream == Stream.FACTS:
            stream = FACTS_LAST
        return Follower(
            self.connection,
            stream,
            wildcard(event_type, kind, namespace),
            start or Start.last_per_subject(),
            on_restart=on_restart,
            heartbeat_seconds=heartbeat_seconds,
        )

    async def events(self, follower: Follower) -> AsyncIterator[Received[EventData]]:
        """The events that a follower delivers; what can't be used goes to the dead letters."""
        async with contextlib.aclosing(follower.messages()) as messages:
            async for message in messages:
                event = await self.readable(message)
                if event is not None:
                    yield event

    async def readable(self, message: Delivered) -> Received[EventData] | None:
        """The event in a message; None for one that can't be used, which goes to the dead letters.

        For whoever folds what it follows: one bad event must not blind it to the others. While the
        bus can't hand out a body, the message is waited for a while.
        """
        for attempt in range(1, READ_ATTEMPTS + 1):
            try:
                return await self.read(message)
            except ProblemsError as error:
                if is_transient(error) and attempt < READ_ATTEMPTS:
                    await asyncio.sleep(ASK_AGAIN_SECONDS * 2**attempt)
                    continue
                await self._set_aside(message, str(error))
                return None
        raise AssertionError("the last attempt returns")

    async def _set_aside(self, message: Delivered, reason: str) -> None:
        log.error("an event cannot be read", extra={"problem": reason})
        letter = dead_letter(self.service, message, reason, f"{self.service.value}-followers")
        try:
            await store(self.connection, letter)
        except ProblemsError as error:
            log.warning("a dead letter could not be stored", extra={"problem": str(error)})

    async def read(self, message: Delivered) -> Received[EventData]:
        """The event in a message, its body fetched from wherever it is.

        Raises `ProblemsError` when it can't be used (POISON_EVENT), or not now.
        """
        return decode(await internalise(self.connection, message), self.clock.anchor)

    async def last(self, event_type: str, key: ObjectKey) -> Received[EventData] | None:
        """The last event of a type about a key; None where there is none (any more)."""
        stream = EVENTS[event_type].stream
        message = await last_message(self.connection, stream, subject(event_type, key))
        return None if message is None else await self.read(message)

    def bucket(self, name: str) -> Bucket:
        """A key-value bucket."""
        return Bucket(self.connection, name)

    async def ask(self, request_subject: str, request: EventData, reply: type[ReplyT]) -> ReplyT:
        """Ask a neighbour; raises `ProblemsError` with its problems or when it doesn't answer.

        While nobody listens (a restart) the question is repeated; one that was sent is not.
        """
        answer = await self._ask(request_subject, request.to_json())
        parsed = reply.from_json(answer)
        parsed.raise_for_problems()
        return parsed

    async def _ask(self, request_subject: str, body: bytes) -> bytes:
        deadline = asyncio.get_running_loop().time() + ASK_SECONDS
        while True:
            try:
                answer = await self.connection.request(request_subject, body, timeout=ASK_SECONDS)
            except nats.errors.NoRespondersError:
                if asyncio.get_running_loop().time() > deadline:
                    raise ProblemsError(_silent(request_subject, "nobody listens")) from None
                await asyncio.sleep(ASK_AGAIN_SECONDS)
            except nats.errors.Error as error:
                raise ProblemsError(_silent(request_subject, str(error))) from error
            else:
                return answer.data


def _silent(request_subject: str, reason: str) -> Problem:
    return Problem(
        code=ErrorCode.BUS_TIMEOUT,
        message=f"no answer to {request_subject}: {reason}",
        remedy="`inferbus status` shows which service is down",
    )


def timer(place: str, event: Outgoing, at_real_ms: int) -> Outgoing:
    """`event` as a message that the server stores at a real time, and no earlier.

    Until then it stands on the subject `place`, where a later timer replaces it.
    """
    kept = {name: value for name, value in event.headers.items() if name.startswith("ce-")}
    return Outgoing(
        place,
        event.body,
        kept
        | {
            SCHEDULE: f"@at {format_time(at_real_ms)}",
            "Nats-Schedule-Target": event.subject,
            "Nats-Schedule-TTL": f"{WOKEN_SECONDS}s",
            "Nats-Rollup": "sub",
        },
    )


def no_timer(place: str) -> Outgoing:
    """Takes the place of a timer that is no longer wanted."""
    return Outgoing(place, b"", {"Nats-Rollup": "sub", "Nats-TTL": f"{WOKEN_SECONDS}s"})
