"""Entries of a key-value bucket, with compare-and-set and atomic writes of several.

The layout is that of NATS' own key-value buckets, so that its tools can read them; writes go
through `store`, because several objects must change together or not at all.
"""

import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from inferbus_contracts.topology import bucket_stream, bucket_subject
from inferbus_shared.bus.connection import Connection
from inferbus_shared.bus.direct import last_message
from inferbus_shared.bus.follow import Follower, Start
from inferbus_shared.bus.messages import Delivered, Outgoing
from inferbus_shared.bus.store import Stored, expecting, store, store_together

_DELETE_MARKER_SECONDS = 3600
_OPERATION = "KV-Operation"


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry at one revision; `value` is None once it was deleted."""

    key: str
    value: bytes | None
    revision: int
    stamp_ms: int = 0


@dataclass(frozen=True, slots=True)
class Write:
    """One change: `value` None deletes; `revision` is the one expected (0: absent, None: any)."""

    key: str
    value: bytes | None
    revision: int | None


class Bucket:
    """One bucket."""

    def __init__(self, connection: Connection, name: str) -> None:
        self._connection = connection
        self._name = name
        self._stream = bucket_stream(name)

    async def get(self, key: str) -> Entry | None:
        """The entry, or None where there is none. Raises `ProblemsError` without an answer."""
        subject = bucket_subject(self._name, key)
        message = await last_message(self._connection, self._stream, subject)
        return None if message is None else self.entry(message)

    async def write(self, changes: Sequence[Write]) -> Stored:
        """Make all changes or none; raises as `store_together` does.

        The positions of the entries are consecutive and end at the returned one.
        """
        return await store_together(self._connection, [self._message(item) for item in changes])

    async def put(self, key: str, value: bytes) -> Stored:
        """Set one entry whatever it was."""
        return await store(self._connection, self._message(Write(key, value, None)))

    def follower(self, key: str = ">") -> Follower:
        """Every entry, then every change."""
        return Follower(
            self._connection,
            self._stream,
            bucket_subject(self._name, key),
            Start.last_per_subject(),
        )

    async def entries(self, follower: Follower) -> AsyncIterator[Entry]:
        """The entries a follower delivers."""
        async for message in follower.messages():
            yield self.entry(message)

    def entry(self, message: Delivered) -> Entry:
        """The entry in a message of this bucket."""
        gone = message.headers.get(_OPERATION) in ("DEL", "PURGE")
        gone = gone or "Nats-Marker-Reason" in message.headers
        key = message.subject.removeprefix(bucket_subject(self._name, ""))
        return Entry(key, None if gone else message.data, message.sequence, message.stamp_ms)

    def _message(self, change: Write) -> Outgoing:
        subject = bucket_subject(self._name, change.key)
        if change.value is None:
            headers = {
                _OPERATION: "PURGE",
                "Nats-Rollup": "sub",
                "Nats-TTL": f"{_DELETE_MARKER_SECONDS}s",
            }
            message = Outgoing(subject, b"", headers)
        else:
            message = Outgoing(subject, change.value)
        return message if change.revision is None else expecting(message, change.revision)


def as_json(value: object) -> bytes:
    """A small entry's value."""
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
