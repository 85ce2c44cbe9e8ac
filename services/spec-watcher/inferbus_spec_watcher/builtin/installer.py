"""Stores the built-in BackendRuntimes, so that people see them, and takes care to own nothing else.

An object that anybody else has applied is that person's whole: what was built in is no part of it
(`policy_objects.apply_document`), and comes back when it is deleted.
"""

from functools import partial

from inferbus_contracts.api.objects import AppliedDocument
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.resources.kinds import key_of
from inferbus_shared.bus.membership import Membership
from inferbus_shared.worklist import Worklist
from inferbus_spec_watcher.builtin import BUILT_IN_RUNTIMES
from inferbus_spec_watcher.policy_objects import BUILT_IN, is_built_in
from inferbus_spec_watcher.ports import Hand, Objects

_RUNTIMES = {key_of(manifest): manifest for manifest in BUILT_IN_RUNTIMES.values()}


class BuiltInInstaller:
    """Keeps what is built in stored, on the one instance that is active."""

    def __init__(self, store: Objects, hand: Hand, membership: Membership) -> None:
        self._store = store
        self._hand = hand
        self._membership = membership
        self._dirty = Worklist[ObjectKey]("built-in")
        store.on_change(self._changed)
        membership.on_change(self._everything)

    async def run(self) -> None:
        """Install until cancelled."""
        await self._store.ready()
        self._everything()
        await self._dirty.run(self._install)

    def _everything(self) -> None:
        for key in _RUNTIMES:
            self._dirty.add(key)

    def _changed(self, key: ObjectKey) -> None:
        if key in _RUNTIMES:
            self._dirty.add(key)

    async def _install(self, key: ObjectKey) -> None:
        if self._membership.is_active:
            await self._hand.apply_rendered(partial(self._missing, key), BUILT_IN)

    def _missing(self, key: ObjectKey) -> list[AppliedDocument]:
        stored = self._store.get(key)
        if stored is not None and not is_built_in(stored.object):
            return []
        return [AppliedDocument(object=dict(_RUNTIMES[key]))]
