"""spec.rejected for objects that the API server let in and admission refuses.

Invariant: what is wrong with an object is told once, until it says something else or was right in
between; a restart tells nothing anew. Its condition `Accepted` is the status writer's.
"""

from inferbus_contracts.canonical import digest
from inferbus_contracts.errors import Problem
from inferbus_contracts.keys import ObjectKey
from inferbus_shared.bus.membership import Membership
from inferbus_shared.worklist import Worklist
from inferbus_spec_watcher.kubernetes_store import KubernetesStore
from inferbus_spec_watcher.policy_objects import last_manager
from inferbus_spec_watcher.rejections import Rejections


class Refusals:
    """Tells on the one instance that is active."""

    def __init__(
        self, store: KubernetesStore, rejections: Rejections, membership: Membership
    ) -> None:
        self._store = store
        self._rejections = rejections
        self._membership = membership
        self._dirty = Worklist[ObjectKey]("refusals")
        self._told: dict[ObjectKey, str] = {}
        self._right: set[ObjectKey] = set()
        store.on_change(self._dirty.add)
        membership.on_change(self._everything)

    async def run(self) -> None:
        """Tell until cancelled."""
        await self._store.ready()
        self._everything()
        await self._dirty.run(self._look_at)

    def _everything(self) -> None:
        for key, _ in self._store.items():
            self._dirty.add(key)

    async def _look_at(self, key: ObjectKey) -> None:
        stored = self._store.get(key)
        problems = self._store.refusal(key)
        if stored is None:
            self._told.pop(key, None)
            self._right.discard(key)
        elif not problems:
            self._told.pop(key, None)
            self._right.add(key)
        elif self._membership.is_active:
            await self._tell(key, last_manager(stored.object), problems)

    async def _tell(self, key: ObjectKey, manager: str, problems: tuple[Problem, ...]) -> None:
        said = digest([str(problem) for problem in problems])
        if self._told.get(key) == said:
            return
        again = key in self._right
        await self._rejections.record(manager, problems, unit=str(key), again=again)
        self._told[key] = said
        self._right.discard(key)
