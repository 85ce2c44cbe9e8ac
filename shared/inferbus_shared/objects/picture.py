"""A picture in memory of the objects bucket, or of one kind in it.

Invariant: the picture at revision n holds exactly what the bucket held then. A deleted object stays
known by the revision of its deletion, because a later write has to be conditional on that.
"""

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.subjects import escape, parse_key
from inferbus_contracts.topology import OBJECTS_BUCKET
from inferbus_shared.bus.bucket import Entry
from inferbus_shared.bus.bus import Bus

Listener = Callable[[ObjectKey], None]


@dataclass(frozen=True, slots=True)
class StoredObject:
    """An object as it stands in the bucket."""

    object: dict[str, Any]
    revision: int

    @property
    def uid(self) -> str:
        """Its uid."""
        return str(self.object["metadata"]["uid"])

    @property
    def generation(self) -> int:
        """Its generation."""
        return int(self.object["metadata"]["generation"])


class ObjectPicture:
    """All objects, or those of one kind."""

    def __init__(self, bus: Bus, kind: str = "") -> None:
        """`kind` is a kind's token; empty means all kinds."""
        self._bucket = bus.bucket(OBJECTS_BUCKET)
        self._follower = self._bucket.follower(f"{escape(kind)}.>" if kind else ">")
        self._objects: dict[ObjectKey, StoredObject] = {}
        self._gone: dict[ObjectKey, int] = {}
        self._listeners: list[Listener] = []
        self._revision = 0
        self._reached = asyncio.Condition()

    @property
    def revision(self) -> int:
        """The newest revision seen."""
        return self._revision

    def on_change(self, listener: Listener) -> None:
        """Call back with the key of every object that changed or went."""
        self._listeners.append(listener)

    async def ready(self) -> None:
        """Wait until the picture is complete."""
        await self._follower.caught_up()

    async def reached(self, revision: int) -> None:
        """Wait until the picture holds a revision that was written to it."""
        async with self._reached:
            await self._reached.wait_for(lambda: self._revision >= revision)

    async def run(self) -> None:
        """Keep the picture current."""
        async for entry in self._bucket.entries(self._follower):
            self.take(entry)
            async with self._reached:
                self._reached.notify_all()

    def get(self, key: ObjectKey) -> StoredObject | None:
        """An object, or None."""
        return self._objects.get(key)

    def keys(self) -> tuple[ObjectKey, ...]:
        """The keys of all objects, in order."""
        return tuple(sorted(self._objects))

    def items(self, kind: str = "") -> Iterator[tuple[ObjectKey, StoredObject]]:
        """Objects of a kind, or all, in key order."""
        for key in sorted(self._objects):
            if not kind or key.kind == kind:
                yield key, self._objects[key]

    def last_revision(self, key: ObjectKey) -> int:
        """The revision that a write of the key has to expect; 0 where it never was."""
        stored = self._objects.get(key)
        return stored.revision if stored else self._gone.get(key, 0)

    def take(self, entry: Entry) -> None:
        """Draw one entry of the bucket in."""
        key = parse_key(*entry.key.split("."))
        body = json.loads(entry.value) if entry.value is not None else None
        self.set(key, body, entry.revision)

    def set(self, key: ObjectKey, body: dict[str, Any] | None, revision: int) -> None:
        """Draw one object in; what is older than the picture changes nothing."""
        if revision <= self.last_revision(key):
            return
        if body is None:
            self._objects.pop(key, None)
            self._gone[key] = revision
        else:
            self._gone.pop(key, None)
            self._objects[key] = StoredObject(body, revision)
        self._revision = max(self._revision, revision)
        self._tell(key)

    def forget(self, key: ObjectKey) -> None:
        """There is no trace of the key in the bucket any more."""
        known = self._objects.pop(key, None)
        self._gone.pop(key, None)
        if known is not None:
            self._tell(key)

    def _tell(self, key: ObjectKey) -> None:
        for listener in self._listeners:
            listener(key)


def controller_reference(document: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The reference to the owner that controls an object; None without one."""
    for reference in document["metadata"].get("ownerReferences", ()):
        if reference.get("controller"):
            return dict(reference)
    return None


def controller_uid(document: Mapping[str, Any]) -> str:
    """The uid of the owner that controls an object; empty without one."""
    reference = controller_reference(document)
    return str(reference["uid"]) if reference else ""


def is_going(document: Mapping[str, Any]) -> bool:
    """Whether an object is being deleted: nothing can keep it any more."""
    return bool(document["metadata"].get("deletionTimestamp"))


def shown(stored: StoredObject) -> dict[str, Any]:
    """An object as people and services see it: with its revision."""
    metadata = stored.object["metadata"] | {"resourceVersion": str(stored.revision)}
    return {**stored.object, "metadata": metadata}
