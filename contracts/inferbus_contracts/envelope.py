"""CloudEvents 1.0 in binary mode: the context in headers, the data model alone in the body.

Invariant: an id is a function of what the event is and why it exists, so writing it twice is the
same as writing it once.
"""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache

from inferbus_contracts.keys import ObjectKey

TYPE_PREFIX = "dev.inferbus."
SCHEMA_ROOT = "https://inferbus.dev/schemas/"
LATEST_TIME_MS = 253_402_300_799_999
"""The last millisecond of the year 9999: the latest that `format_time` can write."""
_NAMESPACE = uuid.uuid5(uuid.NAMESPACE_DNS, "inferbus.dev")


@dataclass(frozen=True, kw_only=True, slots=True)
class Envelope:
    """The context attributes of one event."""

    id: str
    type: str
    """`<domain>.<fact>`; on the wire `dev.inferbus.<domain>.<fact>.v<version>`."""
    source: str
    """`<service>/<instance>`."""
    time_ms: int
    """When it happened, virtual time, milliseconds since 1970."""
    key: ObjectKey
    correlation_id: str = ""
    """Id of the first event of the chain."""
    causation_id: str = ""
    """Id of the event that this one follows from."""
    traceparent: str = ""
    version: int = 1

    def headers(self) -> dict[str, str]:
        """NATS headers; `Nats-Msg-Id` is the event's id."""
        full_type = f"{TYPE_PREFIX}{self.type}.v{self.version}"
        headers = {
            "ce-specversion": "1.0",
            "ce-id": self.id,
            "ce-type": full_type,
            "ce-source": self.source,
            "ce-time": format_time(self.time_ms),
            "ce-subject": str(self.key),
            "ce-dataschema": f"{SCHEMA_ROOT}{self.type}.v{self.version}.json",
            "content-type": "application/json",
            "Nats-Msg-Id": self.id,
        }
        optional = {
            "ce-correlationid": self.correlation_id,
            "ce-causationid": self.causation_id,
            "traceparent": self.traceparent,
        }
        return headers | {name: value for name, value in optional.items() if value}


def parse_headers(headers: Mapping[str, str]) -> Envelope:
    """The envelope in NATS headers; raises `ValueError` naming the attribute that is wrong."""
    missing = [
        name
        for name in ("ce-specversion", "ce-id", "ce-type", "ce-source", "ce-time", "ce-subject")
        if not headers.get(name)
    ]
    if missing:
        raise ValueError(f"the event lacks {', '.join(missing)}")
    if headers["ce-specversion"] != "1.0":
        raise ValueError(f"ce-specversion is {headers['ce-specversion']!r}, not '1.0'")
    type_, version = _split_type(headers["ce-type"])
    return Envelope(
        id=headers["ce-id"],
        type=type_,
        version=version,
        source=headers["ce-source"],
        time_ms=parse_time(headers["ce-time"]),
        key=ObjectKey.parse(headers["ce-subject"]),
        correlation_id=headers.get("ce-correlationid", ""),
        causation_id=headers.get("ce-causationid", ""),
        traceparent=headers.get("traceparent", ""),
    )


def _split_type(full_type: str) -> tuple[str, int]:
    body, _, version = full_type.rpartition(".v")
    if not full_type.startswith(TYPE_PREFIX) or not version.isdecimal():
        raise ValueError(f"ce-type {full_type!r} is not {TYPE_PREFIX}<domain>.<fact>.v<n>")
    return body.removeprefix(TYPE_PREFIX), int(version)


def event_id(event_type: str, key: ObjectKey, cause: str, ordinal: int = 0) -> str:
    """The id of what follows from `cause`: the same cause never makes a second event."""
    return str(uuid.uuid5(_NAMESPACE, f"{cause}|{event_type}|{key}|{ordinal}"))


def observation_id(event_type: str, key: ObjectKey, uid: str, digest: str, previous: str) -> str:
    """The id of an observation: `previous` is the id of the key's observation before it.

    Without it A, B, A inside the duplicate window would lose the second A.
    """
    return event_id(event_type, key, f"{uid}|{digest}|{previous}")


def format_time(time_ms: int) -> str:
    """RFC 3339 with milliseconds, UTC."""
    seconds, rest_ms = divmod(time_ms, 1000)
    return f"{_format_seconds(seconds)}.{rest_ms:03d}Z"


@lru_cache(maxsize=16)
def _format_seconds(seconds: int) -> str:
    """Events come by the thousand a second."""
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}"


def parse_time(text: str) -> int:
    """Milliseconds since 1970 of an RFC 3339 time; raises `ValueError` when it isn't one."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"time {text!r} has no zone")
    return round(moment.timestamp() * 1000)
