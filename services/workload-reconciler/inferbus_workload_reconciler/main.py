"""Wires the workload-reconciler: facts, substrate, one work list of workloads, decisions."""

from collections.abc import Sequence
from functools import partial

from inferbus_contracts.base import EventData
from inferbus_contracts.events.spec import SpecChanged
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.services import Service
from inferbus_shared.bus.folding import fold
from inferbus_shared.bus.membership import Membership
from inferbus_shared.bus.messages import Received
from inferbus_shared.bus.observer import Observer
from inferbus_shared.bus.service import Runtime, run_service
from inferbus_shared.clock import Clock
from inferbus_shared.objects.client import ObjectClient
from inferbus_shared.objects.picture import ObjectPicture
from inferbus_shared.worklist import Worklist
from inferbus_workload_reconciler.adapters_processes import ProcessSubstrate
from inferbus_workload_reconciler.handlers import DecisionHandler
from inferbus_workload_reconciler.memory_store import MemoryStore
from inferbus_workload_reconciler.order_book import OrderBook
from inferbus_workload_reconciler.policy_guard import Guard
from inferbus_workload_reconciler.policy_parsing import PLANNED_KINDS
from inferbus_workload_reconciler.ports import Substrate
from inferbus_workload_reconciler.reconciler import Reconciler
from inferbus_workload_reconciler.settings import WorkloadReconcilerSettings
from inferbus_workload_reconciler.telemetry import ReconcilerMetrics

FOLDED = ("spec.changed", "control.frozen", "control.thawed", "control.approved")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the service; it takes no arguments."""
    del argv
    return run_service(Service.WORKLOAD_RECONCILER, WorkloadReconcilerSettings, serve)


async def serve(runtime: Runtime[WorkloadReconcilerSettings]) -> None:
    """Register everything that runs while the service does."""
    bus, settings = runtime.bus, runtime.settings
    picture = ObjectPicture(bus)
    client = ObjectClient(bus, manager=Service.WORKLOAD_RECONCILER.value)
    substrate = ProcessSubstrate(picture, client, settings.node)
    membership = Membership(bus, bus.connection.settings.instance)
    observer = Observer(bus, "workload.observed")
    orders = OrderBook(bus)
    runtime.background(picture.run(), "objects")
    runtime.background(membership.run(), "membership")
    runtime.background(observer.run(), "facts of workloads")
    await picture.ready()
    await membership.ready()
    metrics = ReconcilerMetrics(runtime.registry)
    reconciler = Reconciler(bus, substrate, MemoryStore(bus), observer, orders, metrics)
    guard = Guard(orders.policies, settings.accelerator_budgets)
    workloads = Workloads(reconciler, membership, orders, guard, metrics, bus.clock)
    await fold(runtime, FOLDED, workloads.take)
    await observer.ready()
    runtime.on_inbox(DecisionHandler(bus, substrate, client, orders, metrics, guard).handle)
    runtime.background(workloads.run(settings.concurrency), "workloads")
    runtime.background(workloads.watch(substrate), "children")


class Workloads:
    """Which workloads there are, which this instance works on, and when."""

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
        self._due = Worklist[ObjectKey]("workloads")
        membership.on_change(self._everything)
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
            self._facts[event.key] = event.data
            self._due.add(event.key)

    async def run(self, concurrency: int) -> None:
        """Work on what is due until cancelled."""
        await self._due.run(self._work, concurrency)

    async def watch(self, substrate: Substrate) -> None:
        """Look again at workloads whose children change."""
        async for key in substrate.changes():
            self._due.add(key)

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
        by_name = {str(key): key for key in self._facts}
        return frozenset(by_name[name] for name in self._membership.owned(by_name))
