"""The memory of each workload, kept in a bucket of its own.

Invariant: a document is stored only over the one that was loaded, so that two instances at work on
one workload never undo what the other remembers. What was loaded is kept here; it may be behind
until `confirm` or `store` says otherwise, and nothing is done to a workload before one of them did.
"""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from inferbus_contracts.canonical import canonical_json
from inferbus_contracts.errors import ProblemsError
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.subjects import key_tokens
from inferbus_contracts.topology import WORKLOADS_BUCKET
from inferbus_shared.bus.bucket import Write
from inferbus_shared.bus.bus import Bus
from inferbus_shared.bus.store import WrongSequenceError


class _Kept(NamedTuple):
    """What the bucket held when it was last looked at."""

    revision: int
    uid: str
    document: Mapping[str, Any]
    own: bool = False
    """Whether this instance stored it."""


class MemoryStore:
    """Loads and stores memory documents."""

    def __init__(self, bus: Bus) -> None:
        self._bucket = bus.bucket(WORKLOADS_BUCKET)
        self._kept: dict[ObjectKey, _Kept] = {}

    async def load(self, key: ObjectKey, uid: str) -> Mapping[str, Any]:
        """The document of the workload with that uid, as last seen; empty when there is none."""
        kept = self._kept.get(key) or await self._look(key)
        return kept.document if kept.uid == uid else {}

    def is_own(self, key: ObjectKey) -> bool:
        """Whether this instance stored what was loaded: its views are never older than that."""
        kept = self._kept.get(key)
        return kept is not None and kept.own

    async def confirm(self, key: ObjectKey) -> bool:
        """Whether what was loaded still stands in the bucket; otherwise `load` reads it anew."""
        before = self._kept.get(key)
        now = await self._look(key)
        return before is not None and before.revision == now.revision

    async def store(self, key: ObjectKey, uid: str, document: Mapping[str, Any]) -> None:
        """Store the document; raises `WrongSequenceError` when another was stored since `load`."""
        value = canonical_json({"uid": uid, "memory": dict(document)})
        write = Write(key_tokens(key), value, self._kept[key].revision)
        try:
            stored = await self._bucket.write([write])
        except (WrongSequenceError, ProblemsError):
            self._kept.pop(key, None)
            raise
        self._kept[key] = _Kept(stored.sequence, uid, document, own=True)

    async def forget(self, key: ObjectKey) -> None:
        """The workload is gone, or its memory says nothing any more; written once at most."""
        entry = await self._bucket.get(key_tokens(key))
        if entry is not None and entry.value is not None:
            await self._bucket.write([Write(key_tokens(key), None, None)])
        self._kept.pop(key, None)

    async def _look(self, key: ObjectKey) -> _Kept:
        entry = await self._bucket.get(key_tokens(key))
        revision = entry.revision if entry else 0
        if entry is None or entry.value is None:
            kept = _Kept(revision, "", {})
        else:
            stored: dict[str, Any] = json.loads(entry.value)
            before = self._kept.get(key)
            own = before is not None and before.own and before.revision == revision
            kept = _Kept(revision, stored["uid"], stored["memory"], own)
        self._kept[key] = kept
        return kept
