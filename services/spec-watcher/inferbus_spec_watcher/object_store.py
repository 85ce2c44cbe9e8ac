"""The objects: a picture in memory of the bucket, and writes conditional on what was seen.

Invariant: the picture is never older than this instance's own writes. Another instance may be
ahead; a write that rests on an older picture is refused by the server, the picture refreshed, and
the caller decides again.
"""

from collections.abc import Mapping
from typing import Any

from inferbus_contracts.canonical import canonical_json
from inferbus_contracts.errors import Problem
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.subjects import key_tokens
from inferbus_contracts.topology import OBJECTS_BUCKET
from inferbus_shared.bus.bucket import Write
from inferbus_shared.bus.bus import Bus
from inferbus_shared.bus.store import UnknownOutcomeError, WrongSequenceError
from inferbus_shared.objects.picture import ObjectPicture
from inferbus_spec_watcher.contention import StaleError


class ObjectStore(ObjectPicture):
    """All objects of the platform, to read and to write."""

    def __init__(self, bus: Bus) -> None:
        super().__init__(bus)
        self._writable = bus.bucket(OBJECTS_BUCKET)

    def refusal(self, key: ObjectKey) -> tuple[Problem, ...]:
        """Nothing is stored here that wasn't admitted."""
        return ()

    def unseen(self, key: ObjectKey) -> Problem | None:
        """The picture is of the whole bucket."""
        return None

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
                self.last_revision(key),
            )
            for key, body in changes.items()
        ]
        try:
            stored = await self._writable.write(writes)
        except (WrongSequenceError, UnknownOutcomeError) as error:
            await self._refresh(changes)
            raise StaleError(str(error)) from error
        first = stored.sequence - len(changes) + 1
        revisions = {key: first + index for index, key in enumerate(changes)}
        for key, body in changes.items():
            self.set(key, body, revisions[key])
        return revisions

    async def _refresh(self, keys: Mapping[ObjectKey, object]) -> None:
        for key in keys:
            entry = await self._writable.get(key_tokens(key))
            if entry is None:
                self.forget(key)
            else:
                self.take(entry)
