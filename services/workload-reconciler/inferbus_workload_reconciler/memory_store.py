"""The memory of each workload, kept in a bucket of its own.

Invariant: a document is stored only over the one that was loaded, so that two instances at work on
one workload never undo what the other remembers.
"""

import json
from collections.abc import Mapping
from typing import Any

from inferbus_contracts.canonical import canonical_json
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.subjects import key_tokens
from inferbus_contracts.topology import WORKLOADS_BUCKET
from inferbus_shared.bus.bucket import Write
from inferbus_shared.bus.bus import Bus


class MemoryStore:
    """Loads and stores memory documents."""

    def __init__(self, bus: Bus) -> None:
        self._bucket = bus.bucket(WORKLOADS_BUCKET)
        self._revisions: dict[ObjectKey, int] = {}

    async def load(self, key: ObjectKey, uid: str) -> Mapping[str, Any]:
        """The document of the workload with that uid; empty when there is none."""
        entry = await self._bucket.get(key_tokens(key))
        self._revisions[key] = entry.revision if entry else 0
        if entry is None or entry.value is None:
            return {}
        stored: dict[str, Any] = json.loads(entry.value)
        return stored["memory"] if stored["uid"] == uid else {}

    async def store(self, key: ObjectKey, uid: str, document: Mapping[str, Any]) -> None:
        """Store the document; raises `WrongSequenceError` when another was stored since `load`."""
        value = canonical_json({"uid": uid, "memory": dict(document)})
        write = Write(key_tokens(key), value, self._revisions[key])
        self._revisions[key] = (await self._bucket.write([write])).sequence

    async def forget(self, key: ObjectKey) -> None:
        """The workload is gone."""
        if await self._bucket.get(key_tokens(key)) is not None:
            await self._bucket.write([Write(key_tokens(key), None, None)])
        self._revisions.pop(key, None)
