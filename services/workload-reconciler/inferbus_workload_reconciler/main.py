"""Wires the workload-reconciler: facts, substrate, one work list of workloads, decisions."""

from collections.abc import Sequence

from inferbus_contracts.services import Service
from inferbus_shared.bus.folding import fold
from inferbus_shared.bus.membership import Membership
from inferbus_shared.bus.observer import Observer
from inferbus_shared.bus.service import Runtime, run_service
from inferbus_shared.kube.client import KubeClient
from inferbus_shared.kube.metrics import KubeMetrics
from inferbus_shared.kube.settings import KubeSettings
from inferbus_shared.objects.client import ObjectClient
from inferbus_shared.objects.picture import ObjectPicture
from inferbus_workload_reconciler.adapters_kubernetes import KubernetesSubstrate
from inferbus_workload_reconciler.adapters_processes import ProcessSubstrate
from inferbus_workload_reconciler.handlers import DecisionHandler
from inferbus_workload_reconciler.memory_store import MemoryStore
from inferbus_workload_reconciler.order_book import OrderBook
from inferbus_workload_reconciler.policy_guard import Guard
from inferbus_workload_reconciler.ports import Substrate
from inferbus_workload_reconciler.reconciler import Reconciler
from inferbus_workload_reconciler.settings import SubstrateName, WorkloadReconcilerSettings
from inferbus_workload_reconciler.telemetry import ReconcilerMetrics
from inferbus_workload_reconciler.workloads import Workloads

FOLDED = ("spec.changed", "control.frozen", "control.thawed", "control.approved")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the service; it takes no arguments."""
    del argv
    return run_service(Service.WORKLOAD_RECONCILER, WorkloadReconcilerSettings, serve)


async def serve(runtime: Runtime[WorkloadReconcilerSettings]) -> None:
    """Register everything that runs while the service does."""
    bus, settings = runtime.bus, runtime.settings
    substrate = await _SUBSTRATES[settings.substrate](runtime)
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


async def _processes(runtime: Runtime[WorkloadReconcilerSettings]) -> Substrate:
    """Pods that are processes of this machine."""
    picture = ObjectPicture(runtime.bus)
    client = ObjectClient(runtime.bus, manager=Service.WORKLOAD_RECONCILER.value)
    substrate = ProcessSubstrate(picture, client, runtime.settings.node)
    runtime.background(picture.run(), "objects")
    await picture.ready()
    return substrate


async def _kubernetes(runtime: Runtime[WorkloadReconcilerSettings]) -> Substrate:
    """Pods of a cluster; readiness says what is wrong with it."""
    client = KubeClient(
        load_settings(KubeSettings),
        metrics=KubeMetrics(Service.WORKLOAD_RECONCILER, runtime.registry),
    )
    await client.__aenter__()
    runtime.on_stop(client.close)
    substrate = KubernetesSubstrate(client, runtime.settings, runtime.bus.clock)
    runtime.requires(substrate.missing)
    for work, name in substrate.runs:
        runtime.background(work, name)
    await substrate.ready()
    return substrate


_SUBSTRATES = {SubstrateName.PROCESSES: _processes, SubstrateName.KUBERNETES: _kubernetes}
