"""An instance that was stopped, and goes on with what it remembers of the world before."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any

from prometheus_client import CollectorRegistry
from workload_builders import serving

from inferbus_contracts.api.objects import ScaleReply, ScaleRequest
from inferbus_contracts.canonical import digest
from inferbus_contracts.events.spec import SpecChanged
from inferbus_contracts.events.workload import Outcome
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.services import Service
from inferbus_shared.bus.observer import Observer
from inferbus_workload_reconciler.actions import Create, Delete, Update, WorkloadEvent
from inferbus_workload_reconciler.memory_store import MemoryStore
from inferbus_workload_reconciler.observed import Observed
from inferbus_workload_reconciler.order_book import OrderBook
from inferbus_workload_reconciler.ports import ActionResult, Surroundings
from inferbus_workload_reconciler.reconciler import AT_ONCE, Reconciler
from inferbus_workload_reconciler.telemetry import ReconcilerMetrics
from inferbus_workload_reconciler.workload import WorkloadSpec
from tests.support.nats import NatsServer

KEY = ObjectKey("ModelServing", "default", "x")


class StoppedView:
    """A substrate whose view stands still, and that refuses whatever is asked of it."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.waited_for: list[int] = []

    async def observe(self, workload: WorkloadSpec) -> Surroundings:
        return Surroundings(observed=Observed(revision=5, complete_to=5), revisions=())

    async def apply(self, action: Create) -> ActionResult:
        self.asked.append(action.name)
        return ActionResult(outcome=Outcome.FAILED, error="refused")

    async def caught_up(self, workload: WorkloadSpec, revision: int) -> bool:
        self.waited_for.append(revision)
        return True

    async def update(self, workload: WorkloadSpec, action: Update) -> ActionResult:
        raise AssertionError

    async def delete(self, workload: WorkloadSpec, action: Delete) -> ActionResult:
        raise AssertionError

    async def changes(self) -> AsyncIterator[ObjectKey | None]:
        yield None

    def refusal(self, workload: WorkloadSpec) -> str:
        return ""

    def status_of(self, key: ObjectKey) -> Mapping[str, Any]:
        return {}

    async def report(self, workload: WorkloadSpec, status: Mapping[str, Any]) -> None:
        """Nobody reads it."""

    def tell(self, workload: WorkloadSpec, events: Iterable[WorkloadEvent]) -> None:
        """Nobody hears it."""

    async def target(self, key: ObjectKey) -> Mapping[str, Any] | None:
        raise AssertionError

    async def scale(self, request: ScaleRequest) -> ScaleReply:
        raise AssertionError


async def test_nothing_is_done_once_another_instance_has_gone_on(nats_server: NatsServer) -> None:
    document = serving(2)
    uid = document["metadata"]["uid"]
    fact = SpecChanged(uid=uid, generation=1, digest=digest(document), object=document)
    async with nats_server.bus(Service.WORKLOAD_RECONCILER) as bus:
        observer = Observer(bus, "workload.observed")
        substrate = StoppedView()
        metrics = ReconcilerMetrics(CollectorRegistry())
        reconciler = Reconciler(bus, substrate, MemoryStore(bus), observer, OrderBook(bus), metrics)
        following = asyncio.create_task(observer.run())
        try:
            await reconciler.reconcile(KEY, fact)
            asked = len(substrate.asked)
            assert asked == 1, "the snapshot, without which nothing else is tried"
            await reconciler.reconcile(KEY, fact)
            assert len(substrate.asked) == asked + 1, "what failed is tried again"
            another = MemoryStore(bus)
            known = await another.load(KEY, uid)
            await another.store(KEY, uid, {**known, "view": 99})
            assert await reconciler.reconcile(KEY, fact) == AT_ONCE
            assert await reconciler.reconcile(KEY, fact) == AT_ONCE
            assert substrate.waited_for == [99]
            assert len(substrate.asked) == asked + 1, "nothing is done from a view before that"
        finally:
            following.cancel()
