"""Deletes what is left without an owner."""

from inferbus_contracts.api.objects import Preconditions
from inferbus_contracts.keys import ObjectKey
from inferbus_shared.bus.membership import Membership
from inferbus_shared.worklist import Worklist
from inferbus_spec_watcher.applier import Applier
from inferbus_spec_watcher.object_store import ObjectStore
from inferbus_spec_watcher.policy_garbage import orphans

_ROUND = "orphans"


class GarbageCollector:
    """Looks for orphans whenever an object went."""

    def __init__(self, store: ObjectStore, applier: Applier, membership: Membership) -> None:
        self._store = store
        self._applier = applier
        self._membership = membership
        self._rounds = Worklist[str]("garbage")
        store.on_change(self._changed)
        membership.on_change(lambda: self._rounds.add(_ROUND))

    async def run(self) -> None:
        """Collect until cancelled."""
        await self._store.ready()
        self._rounds.add(_ROUND)
        await self._rounds.run(self._collect)

    def _changed(self, key: ObjectKey) -> None:
        if self._store.get(key) is None:
            self._rounds.add(_ROUND)

    async def _collect(self, _: str) -> None:
        if not self._membership.is_active:
            return
        for key in orphans(self._store.items()):
            stored = self._store.get(key)
            if stored is not None:
                await self._applier.delete(key, Preconditions(uid=stored.uid))
