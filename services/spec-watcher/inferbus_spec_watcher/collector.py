"""Deletes what is left without an owner.

Invariant: an object whose owner isn't there is found, whichever of the two came or went last: a
child may be stored just after its owner was deleted.
"""

from functools import partial

from inferbus_contracts.keys import ObjectKey
from inferbus_shared.bus.membership import Membership
from inferbus_shared.objects.picture import StoredObject, controller_uid
from inferbus_shared.worklist import Worklist
from inferbus_spec_watcher.applier import Applier
from inferbus_spec_watcher.object_store import ObjectStore
from inferbus_spec_watcher.ownership import owner_of
from inferbus_spec_watcher.policy_garbage import orphans

_ROUND = "orphans"


class GarbageCollector:
    """Looks for orphans whenever an object went, or came without its owner."""

    def __init__(self, store: ObjectStore, applier: Applier, membership: Membership) -> None:
        self._store = store
        self._applier = applier
        self._membership = membership
        self._rounds = Worklist[str]("garbage")
        store.on_change(self._changed)
        membership.on_change(self._look)

    async def run(self) -> None:
        """Collect until cancelled."""
        await self._store.ready()
        self._look()
        await self._rounds.run(self._collect)

    def _look(self) -> None:
        self._rounds.add(_ROUND)

    def _changed(self, key: ObjectKey) -> None:
        if self._store.get(key) is None or self._misses_owner(key):
            self._look()

    def _misses_owner(self, key: ObjectKey) -> bool:
        child = self._store.get(key)
        owner = owner_of(key, child.object) if child else None
        if owner is None:
            return False
        stored = self._store.get(owner.key) if owner.key else None
        return stored is None or stored.uid != owner.uid

    async def _collect(self, _: str) -> None:
        if not self._membership.is_active:
            return
        for key in orphans(self._store.items()):
            stored = self._store.get(key)
            if stored is not None:
                lost = controller_uid(stored.object)
                await self._applier.delete_if(key, partial(_is_controlled_by, lost))


def _is_controlled_by(uid: str, stored: StoredObject) -> bool:
    return controller_uid(stored.object) == uid
