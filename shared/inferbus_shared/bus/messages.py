"""Messages as they arrive, and as they are sent.

`Delivered` is what the server hands out; `Received` is an event decoded from it; `Outgoing` is
ready to be stored. Decoding and encoding are pure.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from nats.aio.msg import Msg
from pydantic import ValidationError

from inferbus_contracts.base import EventData
from inferbus_contracts.catalog import EVENTS
from inferbus_contracts.envelope import Envelope, parse_headers
from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError, shorten
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.subjects import ROOT, subject
from inferbus_shared.clock import Anchor

EventT = TypeVar("EventT", bound=EventData, covariant=True)

MAX_AHEAD_MS = 5_000
"""An event may claim to be that much later than the server saw it; more is clamped."""

DATA_REFERENCE = "ce-dataref"
CLAMPED = "inferbus-clamped"
SCHEDULE = "Nats-Schedule"


@dataclass(frozen=True, slots=True)
class Delivered:
    """One stored message."""

    subject: str
    headers: Mapping[str, str]
    data: bytes
    stream: str
    sequence: int
    """Position in `stream`."""
    stamp_ms: int
    """When the server stored it, real time, milliseconds since 1970."""
    pending: int = 0
    """How many more the consumer has, as of this one."""
    deliveries: int = 1
    consumer_sequence: int = 0
    """Position among what its consumer handed out, from 1 on; 0 where there was no consumer."""


@dataclass(frozen=True, slots=True)
class Received(Generic[EventT]):
    """One event with its position in the log."""

    envelope: Envelope
    data: EventT
    stream: str
    sequence: int
    deliveries: int = 1
    clamped: bool = False
    """True when the event claimed a time too far in the future."""

    @property
    def key(self) -> ObjectKey:
        """What the event is about."""
        return self.envelope.key

    @property
    def id(self) -> str:
        """The event's id."""
        return self.envelope.id

    @property
    def time_ms(self) -> int:
        """When it happened, virtual time."""
        return self.envelope.time_ms


@dataclass(frozen=True, slots=True)
class Outgoing:
    """One message ready to be stored."""

    subject: str
    body: bytes
    headers: dict[str, str] = field(default_factory=dict)


def delivered(message: Msg) -> Delivered:
    """The delivery in a JetStream message."""
    metadata = message.metadata
    return Delivered(
        subject=message.subject,
        headers=message.headers or {},
        data=message.data,
        stream=metadata.stream,
        sequence=metadata.sequence.stream,
        stamp_ms=round(metadata.timestamp.timestamp() * 1000),
        pending=metadata.num_pending,
        deliveries=metadata.num_delivered,
        consumer_sequence=metadata.sequence.consumer,
    )


def decode(message: Delivered, anchor: Anchor) -> Received[EventData]:
    """The event in a message; its body must be here already (see `payloads`).

    Raises `ProblemsError` (POISON_EVENT) that says what doesn't fit.
    """
    try:
        envelope = parse_headers(message.headers)
        spec = EVENTS.get(envelope.type)
        if spec is None:
            raise ValueError(f"event type {envelope.type!r} is not in the catalog")
        _check_subject(message, envelope)
        data = spec.data.from_json(message.data)
    except ValidationError as error:
        details = "; ".join(
            f"{'.'.join(map(str, item['loc']))}: {item['msg']}" for item in error.errors()[:5]
        )
        raise ProblemsError(_poison(message, f"body doesn't fit: {details}")) from None
    except ValueError as error:
        raise ProblemsError(_poison(message, str(error))) from None
    latest = anchor.to_virtual(message.stamp_ms) + MAX_AHEAD_MS
    clamped = envelope.time_ms > latest
    if clamped:
        envelope = _at(envelope, latest)
    return Received(envelope, data, message.stream, message.sequence, message.deliveries, clamped)


def _check_subject(message: Delivered, envelope: Envelope) -> None:
    """Readers filter by subject: an event of another type or key there would deceive them.

    A timer carries the event that it will become, and stands elsewhere until then.
    """
    if SCHEDULE in message.headers:
        return
    own = subject(envelope.type, envelope.key).removeprefix(ROOT)
    if not message.subject.endswith(own):
        raise ValueError(f"its subject isn't that of {envelope.type} about {envelope.key}")


def _at(envelope: Envelope, time_ms: int) -> Envelope:
    values = {name: getattr(envelope, name) for name in Envelope.__dataclass_fields__}
    return Envelope(**(values | {"time_ms": time_ms}))


def _poison(message: Delivered, reason: str) -> Problem:
    return Problem(
        code=ErrorCode.POISON_EVENT,
        message=f"event {message.stream}:{message.sequence} cannot be used: {reason}",
        object=message.headers.get("ce-subject"),
        field=message.subject,
        value=shorten(message.data.decode(errors="replace")),
        remedy="see the dead letters with `inferbus tap --dead`",
    )


def encode(envelope: Envelope, data: EventData) -> Outgoing:
    """The message of an event; a type with a time to live carries it."""
    headers = envelope.headers()
    spec = EVENTS[envelope.type]
    if spec.ttl_seconds is not None:
        headers["Nats-TTL"] = f"{spec.ttl_seconds}s"
    if spec.rollup:
        headers["Nats-Rollup"] = "sub"
    return Outgoing(subject(envelope.type, envelope.key), data.to_json(), headers)
