"""What is done to objects of a cluster beside their children: stamps, and offers that give way.

Level-triggered, on the one instance that is active. Invariant: what is already as it should be gets
no request.
"""

from functools import partial
from typing import Any

from inferbus_contracts.keys import ObjectKey
from inferbus_shared.bus.membership import Membership
from inferbus_shared.clock import Clock
from inferbus_shared.worklist import Worklist
from inferbus_spec_watcher.kubernetes_applier import KubernetesHand
from inferbus_spec_watcher.kubernetes_store import KubernetesStore
from inferbus_spec_watcher.policy_cluster_objects import ClusterObject
from inferbus_spec_watcher.policy_cluster_units import bare, gives_way, offers
from inferbus_spec_watcher.policy_objects import STAMP_MANAGER
from inferbus_spec_watcher.policy_stamps import missing_stamps


class Upkeep:
    """Keeps objects stamped, and takes back what was offered where people have their own."""

    def __init__(
        self,
        store: KubernetesStore,
        hand: KubernetesHand,
        membership: Membership,
        clock: Clock,
    ) -> None:
        self._store = store
        self._hand = hand
        self._membership = membership
        self._clock = clock
        self._dirty = Worklist[ObjectKey]("upkeep")
        store.on_change(self._dirty.add)
        membership.on_change(self._everything)

    async def run(self) -> None:
        """Keep until cancelled."""
        await self._store.ready()
        self._everything()
        await self._dirty.run(self._look_at)

    def _everything(self) -> None:
        for key, _ in self._store.items():
            self._dirty.add(key)

    async def _look_at(self, key: ObjectKey) -> None:
        if not self._membership.is_active:
            return
        for manager in sorted(offers(key)):
            await self._hand.own(key, partial(_given_up, key, manager), manager)
        await self._hand.own(key, self._stamps, STAMP_MANAGER)

    def _stamps(self, stored: ClusterObject) -> dict[str, Any] | None:
        return missing_stamps(stored, self._clock.now_ms())


def _given_up(key: ObjectKey, manager: str, stored: ClusterObject) -> dict[str, Any] | None:
    """Nothing at all, where what `manager` offered has become somebody's own."""
    is_due = manager in stored.claims and gives_way(key, stored)
    return bare(stored.object) if is_due else None
