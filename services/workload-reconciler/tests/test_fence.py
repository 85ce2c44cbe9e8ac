"""An instance that was stopped, and goes on with what it remembers of the world before."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from workload_builders import serving

from inferbus_contracts.api.objects import ScaleReply, ScaleRequest
from inferbus_contracts.canonical import digest
from inferbus_contracts.events.spec import SpecChanged
from inferbus_contracts.events.workload import Outcome
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.services import Service
from inferbus_shared.bus.bus import Bus
from inferbus_shared.bus.observer import Observer
from inferbus_shared.http_client.send_by import is_too_late
from inferbus_workload_reconciler.acting import carry_out
from inferbus_workload_reconciler.actions import (
    ChildKind,
    Create,
    Delete,
    Motive,
    Reason,
    Update,
    WorkloadEvent,
)
from inferbus_workload_reconciler.memory_store import MemoryStore
from inferbus_workload_reconciler.observed import Observed
from inferbus_workload_reconciler.order_book import OrderBook
from inferbus_workload_reconciler.policy_parsing import parse_workload
from inferbus_workload_reconciler.ports import ActionResult, Surroundings
from inferbus_workload_reconciler.reconciler import AT_ONCE, Reconciler
from inferbus_workload_reconciler.standstill import (
    BEAT_SECONDS,
    StoodStillError,
    called_off_after,
)
from inferbus_workload_reconciler.telemetry import ReconcilerMetrics
from inferbus_workload_reconciler.workload import WorkloadSpec
from tests.support.nats import NatsServer

KEY = ObjectKey("ModelServing", "default", "x")


class StoppedView:
    """A substrate whose view stands still, and that refuses whatever is asked of it."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.reported = 0
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
        self.reported += 1

    def tell(self, workload: WorkloadSpec, events: Iterable[WorkloadEvent]) -> None:
        """Nobody hears it."""

    async def target(self, key: ObjectKey) -> Mapping[str, Any] | None:
        raise AssertionError

    async def scale(self, request: ScaleRequest) -> ScaleReply:
        raise AssertionError


@contextlib.asynccontextmanager
async def reconciling(
    nats_server: NatsServer,
) -> AsyncIterator[tuple[Bus, StoppedView, Reconciler, SpecChanged]]:
    """A reconciler over a view that stands still, and what it is to make of it."""
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
            yield bus, substrate, reconciler, fact
        finally:
            following.cancel()


async def test_nothing_is_done_once_another_instance_has_gone_on(nats_server: NatsServer) -> None:
    async with reconciling(nats_server) as (bus, substrate, reconciler, fact):
        await reconciler.reconcile(KEY, fact)
        asked = len(substrate.asked)
        assert asked == 1, "the snapshot, without which nothing else is tried"
        await reconciler.reconcile(KEY, fact)
        assert len(substrate.asked) == asked + 1, "what failed is tried again"
        another = MemoryStore(bus)
        known = await another.load(KEY, fact.uid)
        await another.store(KEY, fact.uid, {**known, "view": 99})
        assert await reconciler.reconcile(KEY, fact) == AT_ONCE
        assert await reconciler.reconcile(KEY, fact) == AT_ONCE
        assert substrate.waited_for == [99]
        assert len(substrate.asked) == asked + 1, "nothing is done from a view before that"


async def test_what_was_planned_too_long_ago_is_planned_anew(
    nats_server: NatsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An instance that was stopped between its plan and its acts: another may have acted since."""
    async with reconciling(nats_server) as (_, substrate, reconciler, fact):
        monkeypatch.setattr("inferbus_workload_reconciler.reconciler.ACT_SECONDS", -1.0)
        assert await reconciler.reconcile(KEY, fact) == AT_ONCE
        assert (substrate.asked, substrate.reported) == ([], 0)


async def test_of_many_actions_some_are_under_way_at_a_time() -> None:
    """What waits for its turn when an instance is stopped is never sent."""
    workload = parse_workload(serving(4))
    hands = asyncio.Semaphore(2)
    substrate = SlowHands()
    done = await carry_out(substrate, workload, _pods(6), hands)
    assert [one.action.name for one in done] == [f"p{number}" for number in range(6)]
    assert substrate.most == 2


class SlowHands(StoppedView):
    """A substrate that is in no hurry, and counts what it is at."""

    def __init__(self) -> None:
        super().__init__()
        self.under_way = self.most = 0

    async def apply(self, action: Create) -> ActionResult:
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        await asyncio.sleep(0)
        self.under_way -= 1
        return ActionResult(outcome=Outcome.DONE)


def _pods(number: int) -> list[Create]:
    return [
        Create(
            child=ChildKind.POD,
            manifest={"metadata": {"name": f"p{each}"}},
            motive=Motive(Reason.SERVICE_MISSING, "test"),
        )
        for each in range(number)
    ]


async def test_what_was_under_way_when_the_process_stood_still_is_called_off() -> None:
    went_on = False
    answered = asyncio.Event()

    async def act() -> None:
        nonlocal went_on
        await answered.wait()
        went_on = True

    async def act_twice() -> None:
        async with called_off_after(2 * BEAT_SECONDS):
            asyncio.get_running_loop().call_later(BEAT_SECONDS / 2, _stand_still, answered)
            await asyncio.gather(act(), act())

    with pytest.raises(StoodStillError):
        await act_twice()
    assert not went_on


async def test_nothing_is_sent_by_the_step_in_which_the_process_stood_still(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where it was stopped between its last look at the clock and sending."""
    monkeypatch.setattr("inferbus_workload_reconciler.acting.STANDSTILL_SECONDS", BEAT_SECONDS)

    class Stopped(StoppedView):
        async def apply(self, action: Create) -> ActionResult:
            before = is_too_late()
            _stand_still_for(2 * BEAT_SECONDS)
            self.asked.append(f"{before} {is_too_late()}")
            return ActionResult(outcome=Outcome.DONE)

    view = Stopped()
    await carry_out(view, parse_workload(serving(1)), _pods(1))
    assert view.asked == ["False True"]
    assert not is_too_late(), "what others send isn't concerned"


def _stand_still_for(seconds: float) -> None:
    time.sleep(seconds)


def _stand_still(answered: asyncio.Event) -> None:
    """The process is stopped while an answer is on its way."""
    _stand_still_for(4 * BEAT_SECONDS)
    asyncio.get_running_loop().call_soon(answered.set)


async def test_what_takes_long_is_left_alone() -> None:
    async with called_off_after(BEAT_SECONDS / 2):
        pass
    async with called_off_after(BEAT_SECONDS * 3):
        await asyncio.sleep(BEAT_SECONDS * 4)
