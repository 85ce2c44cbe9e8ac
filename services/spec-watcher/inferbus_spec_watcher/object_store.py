"""The objects: a picture in memory of the bucket, and writes conditional on what was seen.

Invariant: the picture is never older than this instance's own writes. Another instance may be
ahead; a write that rests on an older picture is refused by the server, the picture refreshed, and
the caller decides again.
"""

import json
import logging
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from inferbus_contracts.canonical import canonical_json
from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.subjects import key_tokens, parse_key
from inferbus_contracts.topology import OBJECTS_BUCKET
from inferbus_shared.bus.bucket import Entry, Write
from inferbus_shared.bus.bus import Bus
from inferbus_shared.bus.store import UnknownOutcomeError, WrongSequenceError
from inferbus_spec_watcher.policy_objects import Stored

log = logging.getLogger("inferbus.spec-watcher")

Listener = Callable[[ObjectKey], None]


class StaleError(Exception):
    """A write rested on an older picture; the picture is fresh now: decide again."""


class ObjectStore:
    """All objects of the platform."""

    def __init__(self, bus: Bus) -> None:
        self._bucket = bus.bucket(OBJECTS_BUCKET)
        self._follower = self._bucket.follower()
        self._objects: dict[ObjectKey, Stored] = {}
        self._gone: dict[ObjectKey, int] = {}
        self._listeners: list[Listener] = []

    def on_change(self, listener: Listener) -> None:
        """Call back with the key of every object that changed or went."""
        self._listeners.append(listener)

    async def ready(self) -> None:
        """Wait until the picture is complete."""
        await self._follower.caught_up()

    async def run(self) -> None:
        """Keep the picture current."""
        async for entry in self._bucket.entries(self._follower):
            self._take(entry)

    def get(self, key: ObjectKey) -> Stored | None:
        """An object, or None."""
        return self._objects.get(key)

    def keys(self) -> tuple[ObjectKey, ...]:
        """The keys of all objects, in order."""
        return tuple(sorted(self._objects))

    def items(self, kind: str = "") -> Iterator[tuple[ObjectKey, Stored]]:
        """Objects of a kind, or all, in key order."""
        for key in sorted(self._objects):
            if not kind or key.kind == kind:
                yield key, self._objects[key]

    def owned_by(self, uid: str) -> list[ObjectKey]:
        """The keys of what an owner controls, in order."""
        return [key for key, stored in self.items() if controller_uid(stored.object) == uid]

    async def write(
        self, changes: Mapping[ObjectKey, dict[str, Any] | None]
    ) -> dict[ObjectKey, int]:
        """Store all changes or none (None deletes); the revisions afterwards.

        Raises `StaleError` when somebody else was first, `ProblemsError` when the bus refuses.
        """
        writes = [
            Write(
                key_tokens(key),
                None if body is None else canonical_json(body),
                self._expected(key),
            )
            for key, body in changes.items()
        ]
        try:
            stored = await self._bucket.write(writes)
        except (WrongSequenceError, UnknownOutcomeError) as error:
            await self._refresh(changes)
            raise StaleError(str(error)) from error
        first = stored.sequence - len(changes) + 1
        revisions = {key: first + index for index, key in enumerate(changes)}
        for key, body in changes.items():
            self._set(key, body, revisions[key])
        return revisions

    def _expected(self, key: ObjectKey) -> int:
        stored = self._objects.get(key)
        return stored.revision if stored else self._gone.get(key, 0)

    async def _refresh(self, keys: Mapping[ObjectKey, object]) -> None:
        for key in keys:
            entry = await self._bucket.get(key_tokens(key))
            if entry is None:
                self._gone.pop(key, None)
                self._forget(key, 0)
            else:
                self._take(entry)

    def _take(self, entry: Entry) -> None:
        key = parse_key(*entry.key.split("."))
        body = json.loads(entry.value) if entry.value is not None else None
        self._set(key, body, entry.revision)

    def _set(self, key: ObjectKey, body: dict[str, Any] | None, revision: int) -> None:
        if revision <= self._expected(key):
            return
        if body is None:
            self._forget(key, revision)
        else:
            self._gone.pop(key, None)
            self._objects[key] = Stored(body, revision)
        for listener in self._listeners:
            listener(key)

    def _forget(self, key: ObjectKey, revision: int) -> None:
        self._objects.pop(key, None)
        if revision:
            self._gone[key] = revision


def controller_uid(document: Mapping[str, Any]) -> str:
    """The uid of the owner that controls an object; empty without one."""
    for reference in document["metadata"].get("ownerReferences", ()):
        if reference.get("controller"):
            return str(reference["uid"])
    return ""


def shown(stored: Stored) -> dict[str, Any]:
    """An object as people and services see it: with its revision."""
    metadata = stored.object["metadata"] | {"resourceVersion": str(stored.revision)}
    return {**stored.object, "metadata": metadata}


def too_contested(key: ObjectKey) -> ProblemsError:
    """The error of a change that lost against others again and again."""
    return ProblemsError(
        Problem(
            code=ErrorCode.CONFLICT,
            message="others changed the object at the same time, several times in a row",
            object=str(key),
            remedy="try again",
        )
    )
