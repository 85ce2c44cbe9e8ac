"""Wires the workload-reconciler: facts, substrate, one work list of workloads, decisions."""

from collections.abc import Sequence

from inferbus_contracts.services import Service
from inferbus_shared.bus.folding import fold
from inferbus_shared.bus.membership import Membership
from inferbus_shared.bus.observer import Observer
from inferbus_shared.bus.service import Runtime, run_service
from inferbus_workload_reconciler.handlers import DecisionHandler
from inferbus_workload_reconciler.memory_store import MemoryStore
from inferbus_workload_reconciler.order_book import OrderBook
from inferbus_workload_reconciler.policy_guard import Guard
from inferbus_workload_reconciler.reconciler import Reconciler
from inferbus_workload_reconciler.settings import WorkloadReconcilerSettings
from inferbus_workload_reconciler.substrates import new_loop, open_substrate
from inferbus_workload_reconciler.telemetry import ReconcilerMetrics
from inferbus_workload_reconciler.workloads import Workloads

FOLDED = ("spec.changed", "control.frozen", "control.thawed", "control.approved")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the service; it takes no arguments."""
    del argv
    return run_service(Service.WORKLOAD_RECONCILER, WorkloadReconcilerSettings, serve, new_loop)


async def serve(runtime: Runtime[WorkloadReconcilerSettings]) -> None:
    """Register everything that runs while the service does."""
    bus, settings = runtime.bus, runtime.settings
    substrate = await open_substrate(runtime)
    membership = Membership(bus, bus.connection.settings.instance)
    observer = Observer(bus, "workload.observed")
    orders = OrderBook(bus)
    runtime.background(membership.run(), "membership")
    runtime.background(observer.run(), "facts of workloads")
    await membership.ready()
    metrics = ReconcilerMetrics(runtime.registry)
    reconciler = Reconciler(bus, substrate, MemoryStore(bus), observer, orders, metrics)
    guard = Guard(orders.policies, settings.accelerator_budgets)
    workloads = Workloads(reconciler, membership, orders, guard, metrics, bus.clock)
    await fold(runtime, FOLDED, workloads.take)
    await observer.ready()
    runtime.on_inbox(DecisionHandler(bus, substrate, orders, metrics, guard).handle)
    runtime.background(workloads.run(settings.concurrency), "workloads")
    runtime.background(workloads.watch(substrate), "children")
