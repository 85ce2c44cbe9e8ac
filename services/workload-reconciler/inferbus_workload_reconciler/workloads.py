"""Which workloads there are, which this instance works on, and when.

Invariant: a workload is looked at when its object, its children, an order or the membership
changes; who owns it is asked anew each time, so that what moved to another instance is left alone.
"""

from functools import partial

from inferbus_contracts.base import EventData
from inferbus_contracts.events.spec import SpecChanged
from inferbus_contracts.keys import ObjectKey
from inferbus_shared.bus.membership import Membership
from inferbus_shared.bus.messages import Received
from inferbus_shared.clock import Clock
from inferbus_shared.worklist import Worklist
from inferbus_workload_reconciler.order_book import OrderBook
from inferbus_workload_reconciler.policy_guard import Guard
from inferbus_workload_reconciler.policy_parsing import PLANNED_KINDS
from inferbus_workload_reconciler.ports import Substrate
from inferbus_workload_reconciler.reconciler import Reconciler
from inferbus_workload_reconciler.telemetry import ReconcilerMetrics


class Workloads:
    """The workloads and the work on them."""

    def __init__(
        self,
        reconciler: Reconciler,
        membership: Membership,
        orders: OrderBook,
        guard: Guard,
        metrics: ReconcilerMetrics,
        clock: Clock,
    ) -> None:
        self._guard = guard
        self._reconciler = reconciler
        self._clock = clock
        self._membership = membership
        self._orders = orders
        self._facts: dict[ObjectKey, SpecChanged] = {}
        self._owned: frozenset[ObjectKey] | None = None
        self._due = Worklist[ObjectKey]("workloads")
        membership.on_change(self._members_changed)
        metrics.free.set_function(partial(self._count, False))
        metrics.frozen.set_function(partial(self._count, True))

    def take(self, event: Received[EventData]) -> None:
        """Fold one fact in."""
        if self._orders.take(event):
            self._everything()
        elif isinstance(event.data, SpecChanged):
            self._guard.take(event.key, event.data)
            if event.key.kind not in PLANNED_KINDS:
                return
            if event.key not in self._facts:
                self._owned = None
            self._facts[event.key] = event.data
            self._due.add(event.key)

    async def run(self, concurrency: int) -> None:
        """Work on what is due until cancelled."""
        await self._due.run(self._work, concurrency)

    async def watch(self, substrate: Substrate) -> None:
        """Look again at workloads whose children change."""
        async for key in substrate.changes():
            if key is None:
                self._everything()
            elif key in self._facts:
                self._due.add(key)

    def _members_changed(self) -> None:
        self._owned = None
        self._everything()

    def _everything(self) -> None:
        for key in self._facts:
            self._due.add(key)

    async def _work(self, key: ObjectKey) -> float | None:
        fact = self._facts.get(key)
        if fact is None or key not in self._own():
            return None
        if fact.deleted:
            await self._reconciler.forget(key, fact)
            return None
        return await self._reconciler.reconcile(key, fact)

    def _count(self, frozen: bool) -> int:
        """This instance's workloads that are frozen, or aren't."""
        now_ms = self._clock.now_ms()
        standing = (key for key in self._own() if not self._facts[key].deleted)
        return sum((self._orders.freeze(key, now_ms) is not None) is frozen for key in standing)

    def _own(self) -> frozenset[ObjectKey]:
        if self._owned is None:
            by_name = {str(key): key for key in self._facts}
            self._owned = frozenset(by_name[name] for name in self._membership.owned(by_name))
        return self._owned
