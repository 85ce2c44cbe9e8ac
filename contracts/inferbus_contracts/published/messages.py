"""The messages that stand behind the channels: their bodies and their headers.

Invariant: a body has a schema of its own wherever the platform defines it; what it only carries
(objects, dead letters, entries of buckets) is any JSON object.
"""

from dataclasses import dataclass
from typing import Any

from inferbus_contracts.catalog import EventSpec
from inferbus_contracts.envelope import Envelope
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.published.calls import Call, Word
from inferbus_contracts.published.schemas import (
    EVENT_VERSION,
    event_path,
    reply_path,
    request_path,
    word_path,
)

CLOUD_EVENT_HEADERS: dict[str, Any] = {
    "type": "object",
    "description": "The context attributes of CloudEvents 1.0, binary mode.",
    "required": [
        "ce-specversion",
        "ce-id",
        "ce-type",
        "ce-source",
        "ce-time",
        "ce-subject",
        "Nats-Msg-Id",
    ],
    "properties": {
        "ce-specversion": {"const": "1.0"},
        "ce-id": {
            "type": "string",
            "description": "The same event written twice has the same id.",
        },
        "ce-type": {"type": "string"},
        "ce-source": {"type": "string", "description": "`<service>/<instance>`."},
        "ce-time": {
            "type": "string",
            "format": "date-time",
            "description": "When it happened, virtual time.",
        },
        "ce-subject": {
            "type": "string",
            "description": "The key: `kind/namespace/name`, `/role` behind it for a role.",
        },
        "ce-dataschema": {"type": "string", "format": "uri"},
        "ce-correlationid": {
            "type": "string",
            "description": "Id of the first event of the chain.",
        },
        "ce-causationid": {
            "type": "string",
            "description": "Id of the event that this one follows from.",
        },
        "ce-dataref": {
            "type": "string",
            "description": "Where the body is when it is too large; the message's own is empty.",
        },
        "traceparent": {"type": "string", "description": "W3C trace context."},
        "content-type": {"const": "application/json"},
        "Nats-Msg-Id": {
            "type": "string",
            "description": "Equal to `ce-id`; on a message with a state, the id of that state.",
        },
        "inferbus-state": {
            "type": "string",
            "description": "On a decision: the state of its key, the JSON of a `StateStored`.",
        },
    },
}

DEAD_LETTER_HEADERS: dict[str, Any] = {
    "type": "object",
    "description": "Those of the event, as far as it had any, and what became of it.",
    "required": [
        "inferbus-reason",
        "inferbus-stream",
        "inferbus-sequence",
        "inferbus-consumer",
        "Nats-Msg-Id",
    ],
    "properties": {
        "inferbus-reason": {"type": "string"},
        "inferbus-stream": {"type": "string"},
        "inferbus-sequence": {"type": "string", "pattern": "^[0-9]+$"},
        "inferbus-consumer": {"type": "string"},
        "Nats-Msg-Id": {"type": "string"},
    },
}


@dataclass(frozen=True, kw_only=True)
class Message:
    """One message."""

    id: str
    """Letters, digits, `.` and `-`; unique among all messages."""
    summary: str
    schema: str = ""
    """Path of the body's schema below the folder of schemas; empty: any JSON object."""
    event: EventSpec | None = None
    """The catalog's row; None when it isn't an event."""


DEAD_LETTER = Message(id="dead-letter", summary="An event that could not be handled.")


def event_message(event: EventSpec) -> Message:
    """An event of the catalog."""
    return Message(
        id=f"{event.type}.v{EVENT_VERSION}",
        summary=_first_line(event.data),
        schema=event_path(event.type),
        event=event,
    )


def request_message(call: Call) -> Message:
    """The question of a call."""
    return Message(
        id=f"{call.id}.request", summary=_first_line(call.request), schema=request_path(call.id)
    )


def reply_message(call: Call) -> Message:
    """The answer of a call."""
    return Message(
        id=f"{call.id}.reply", summary=_first_line(call.reply), schema=reply_path(call.id)
    )


def word_message(word: Word) -> Message:
    """What instances tell each other."""
    return Message(id=word.id, summary=_first_line(word.body), schema=word_path(word.id))


def entry_message(bucket: str) -> Message:
    """One entry of a bucket."""
    return Message(id=f"bucket.{bucket}.entry", summary=f"One entry of the bucket {bucket}.")


def event_headers(event: EventSpec) -> dict[str, Any]:
    """What the headers of an event hold beyond `CLOUD_EVENT_HEADERS`."""
    example = Envelope(
        id="",
        type=event.type,
        source="",
        time_ms=0,
        key=ObjectKey("", "", ""),
        version=EVENT_VERSION,
    )
    fixed = {name: example.headers()[name] for name in ("ce-type", "ce-dataschema")}
    if event.ttl_seconds is not None:
        fixed["Nats-TTL"] = f"{event.ttl_seconds}s"
    if event.rollup:
        fixed["Nats-Rollup"] = "sub"
    return {"properties": {name: {"const": value} for name, value in fixed.items()}}


def _first_line(model: type[Any]) -> str:
    return (model.__doc__ or "").partition("\n")[0]
