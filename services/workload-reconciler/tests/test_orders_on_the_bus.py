"""What people order, enforced by the reconciler on a real bus (DESIGN sections 4 and 6).

Order is asserted on the log, not on the wall clock: of two events of one stream the sequence tells
which came first.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from workload_builders import role, serving

from inferbus_contracts.api.objects import AppliedDocument
from inferbus_contracts.base import EventData
from inferbus_contracts.events.control import ControlApproved, ControlFrozen, ControlThawed, Order
from inferbus_contracts.events.scaling import (
    Allocation,
    ApplyOutcome,
    DecisionRecord,
    ScalingAllocated,
    ScalingApplied,
    ScalingDecided,
)
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.orders import PLATFORM, namespace_scope
from inferbus_contracts.services import Service
from inferbus_shared.bus.bus import Bus
from inferbus_shared.bus.follow import Start
from inferbus_shared.bus.messages import Received
from inferbus_shared.objects.client import ObjectClient
from inferbus_shared.objects.picture import ObjectPicture
from inferbus_workload_reconciler.adapters_processes import ProcessSubstrate
from inferbus_workload_reconciler.handlers import DecisionHandler
from inferbus_workload_reconciler.main import serve
from inferbus_workload_reconciler.order_book import OrderBook
from inferbus_workload_reconciler.settings import WorkloadReconcilerSettings
from inferbus_workload_reconciler.telemetry import ReconcilerMetrics
from tests.support.eventually import eventually
from tests.support.nats import NatsServer
from tests.support.services import running_service

pytestmark = pytest.mark.usefixtures("spec_watcher")

GROUP = "workload.serving.volcano.sh/v1alpha1"
CHAT = ObjectKey("ModelServing", "default", "chat")
SPARE = CHAT._replace(name="spare")
POLICY = ObjectKey("AutoscalingPolicy", "default", "scale")
BINDING = ObjectKey("AutoscalingPolicyBinding", "default", "scale")
RECORD = DecisionRecord(decider="d", version="1", policy="p", policy_digest="d", input={})
HOUR_MS = 3_600_000
MOST_DECISIONS = 400
BEFORE_THE_FREEZE = 5

Handle = Callable[[Received[EventData]], Awaitable[None]]


@contextlib.asynccontextmanager
async def parties(
    server: NatsServer, decider: Service = Service.AUTOSCALER
) -> AsyncIterator[tuple[Bus, Bus, Bus, Bus]]:
    """Who decides, the reconciler, who orders, and who looks."""
    async with (
        server.bus(decider) as deciding,
        server.bus(Service.WORKLOAD_RECONCILER) as bus,
        server.bus(Service.CONSOLE) as console,
        server.bus(Service.CLI) as people,
    ):
        yield deciding, bus, console, people


def workload(name: str = CHAT.name) -> dict[str, Any]:
    document = serving(1, [role("main")])
    document["metadata"] = {"name": name}
    return document


def policy_documents() -> list[dict[str, Any]]:
    metrics = [{"metricName": "waiting", "targetValue": "2"}]
    target = {"targetRef": {"name": CHAT.name}}
    single = {"target": target, "minReplicas": 1, "maxReplicas": 9}
    specs = {
        POLICY: {"metrics": metrics},
        BINDING: {"policyRef": {"name": POLICY.name}, "homogeneousTarget": single},
    }
    return [
        {"apiVersion": GROUP, "kind": key.kind, "metadata": {"name": key.name}, "spec": spec}
        for key, spec in specs.items()
    ]


async def stored(people: Bus, *documents: dict[str, Any]) -> list[str]:
    """Apply objects; their uids."""
    client = ObjectClient(people, "cli")
    made = await client.apply([AppliedDocument(object=one) for one in documents])
    return [one.uid for one in made]


def decided(uid: str, desired: int, generation: int = 1, apply: str = "auto") -> ScalingDecided:
    return ScalingDecided(
        current=1,
        desired=desired,
        apply=apply,
        target_uid=uid,
        target_generation=generation,
        record=RECORD,
    )


async def written(bus: Bus, data: EventData, key: ObjectKey, id_: str) -> Received[EventData]:
    """Store an event, and read it back as its reader gets it."""
    await bus.publish(bus.event(data, key, id=id_))
    event = await bus.last(data.event_type, key)
    assert event is not None
    return event


async def order(console: Bus, data: Order, scope: ObjectKey) -> Received[EventData]:
    return await written(console, data, scope, f"{data.event_type} of {scope}")


async def answers(bus: Bus, key: ObjectKey = CHAT) -> list[Received[EventData]]:
    return [
        event
        async for message in bus.follow("scaling.applied", Start.everything()).snapshot()
        for event in [await bus.read(message)]
        if event.key == key
    ]


async def answer_to(bus: Bus, decision_id: str, key: ObjectKey = CHAT) -> ScalingApplied:
    """The last answer about a decision, as soon as there is one."""

    async def find() -> ScalingApplied | None:
        found = [one.data for one in await answers(bus, key)]
        own = [one for one in found if isinstance(one, ScalingApplied)]
        return next((one for one in reversed(own) if one.decision_id == decision_id), None)

    found = await eventually(find)
    assert found is not None
    return found


async def replicas(people: Bus, key: ObjectKey = CHAT) -> int:
    document = await ObjectClient(people, "cli").get(key)
    return int(document["spec"]["replicas"])


def blind_handler(bus: Bus, *known: Received[EventData]) -> Handle:
    """A handler that folded only `known`: as one is when a new order hasn't reached it yet."""
    client = ObjectClient(bus, "workload-reconciler")
    book = OrderBook(bus)
    for event in known:
        book.take(event)
    handler = DecisionHandler(
        bus,
        ProcessSubstrate(ObjectPicture(bus), client, "local"),
        book,
        ReconcilerMetrics(CollectorRegistry()),
    )
    return lambda event: handler.handle(event, None)


async def test_a_freeze_of_one_role_holds_those_that_are_decided_about_with_it(
    nats_server: NatsServer,
) -> None:
    """Though its handler hasn't heard of it: every pair that comes into force was chosen as one."""
    prefill, decode = (CHAT._replace(role=name) for name in ("prefill", "decode"))
    document = workload()
    (only,) = document["spec"]["template"]["roles"]
    document["spec"]["template"]["roles"] = [
        {**only, "name": key.role, "replicas": 1} for key in (prefill, decode)
    ]
    scaling = {"minReplicas": 1, "maxReplicas": 9, "metricSources": {"waiting": {"pod": {}}}}
    pair = {
        "apiVersion": GROUP,
        "kind": POLICY.kind,
        "metadata": {"name": POLICY.name},
        "spec": {
            "metrics": [{"name": "waiting", "targetValue": "2"}],
            "disaggregatedTarget": {
                "targetRef": {"kind": CHAT.kind, "name": CHAT.name},
                "roles": {key.role: scaling for key in (prefill, decode)},
            },
        },
    }
    async with parties(nats_server) as (decider, bus, console, people):
        uid, _ = await stored(people, document, pair)

        async def told() -> Received[EventData] | None:
            return await bus.last("spec.changed", POLICY)

        known = await eventually(told)
        assert known is not None
        handle = blind_handler(bus, known)
        await order(console, ControlFrozen(who="ada", why="incident"), prefill)
        await handle(await written(decider, decided(uid, 2), decode, "d1"))
        answer = await answer_to(people, "d1", decode)
        assert (answer.outcome, answer.replicas) == (ApplyOutcome.FROZEN, 1)
        assert str(prefill) in answer.message
        await order(console, ControlThawed(who="ada", why="over"), prefill)
        await handle(await written(decider, decided(uid, 3), decode, "d2"))
        answer = await answer_to(people, "d2", decode)
        assert (answer.outcome, answer.replicas) == (ApplyOutcome.APPLIED, 3)


async def test_nothing_is_scaled_after_a_freeze_but_what_was_under_way(
    nats_server: NatsServer,
) -> None:
    """One decision after the other, as fast as they are answered, and a freeze in between."""
    async with (
        running_service(nats_server, serve, WorkloadReconcilerSettings()) as runtime,
        nats_server.bus(Service.AUTOSCALER) as decider,
        nats_server.bus(Service.CONSOLE) as console,
        nats_server.bus(Service.CLI) as people,
    ):
        (uid,) = await stored(people, workload())
        enough = asyncio.Event()

        async def decide_until_refused() -> None:
            generation = 1
            for number in range(MOST_DECISIONS):
                event = decided(uid, 2 - number % 2, generation)
                await decider.publish(decider.event(event, CHAT, id=f"d{number}"))
                answer = await answer_to(people, f"d{number}")
                if answer.outcome is not ApplyOutcome.APPLIED:
                    assert answer.outcome is ApplyOutcome.FROZEN
                    return
                generation = answer.generation
                if number >= BEFORE_THE_FREEZE:
                    enough.set()
            raise AssertionError("it was never frozen")

        deciding = asyncio.create_task(decide_until_refused())
        await enough.wait()
        freeze = await order(console, ControlFrozen(who="ada", why="incident"), CHAT)
        await deciding

        given = await answers(people)
        outcomes = [one.data.outcome for one in given if isinstance(one.data, ScalingApplied)]
        late = [one for one in given if one.sequence > freeze.sequence]
        assert outcomes.count(ApplyOutcome.APPLIED) > BEFORE_THE_FREEZE
        assert [one.data.outcome for one in late if isinstance(one.data, ScalingApplied)][1:] in (
            [],
            [ApplyOutcome.FROZEN],
        )
        assert outcomes[-1] is ApplyOutcome.FROZEN
        for word in (ApplyOutcome.APPLIED, ApplyOutcome.FROZEN):
            counted = runtime.registry.get_sample_value(
                "inferbus_workload_reconciler_answers_total", {"outcome": word.value}
            )
            assert counted == outcomes.count(word)

        def frozen_workloads() -> bool:
            name = "inferbus_workload_reconciler_workloads"
            return runtime.registry.get_sample_value(name, {"scaling": "frozen"}) == 1

        await eventually(frozen_workloads)
        last_applied = [one.data for one in given if isinstance(one.data, ScalingApplied)][-2]
        assert await replicas(people) == last_applied.replicas

        thaw = await order(console, ControlThawed(who="ada", why="over"), CHAT)
        assert thaw.sequence > freeze.sequence
        wanted = 3 - last_applied.replicas
        after = decided(uid, wanted, last_applied.generation)
        await decider.publish(decider.event(after, CHAT, id="after"))
        assert (await answer_to(people, "after")).outcome is ApplyOutcome.APPLIED
        assert await replicas(people) == wanted


async def test_an_order_counts_from_when_it_stands_in_the_log(nats_server: NatsServer) -> None:
    """The race that memory alone would lose: the order is there, and was not delivered yet."""
    async with parties(nats_server) as (decider, bus, console, people):
        uid, *_ = await stored(people, workload(), *policy_documents())
        specs = [
            await eventually(lambda key=key: bus.last("spec.changed", key))
            for key in (POLICY, BINDING)
        ]
        handle = blind_handler(bus, *(one for one in specs if one is not None))
        generation = 1
        for scope in (CHAT, BINDING, POLICY, namespace_scope("default"), PLATFORM):
            wanted = decided(uid, generation + 1, generation)
            until_ms = console.clock.now_ms() + HOUR_MS
            frozen = ControlFrozen(who="ada", why="incident 42", until_ms=until_ms)
            await order(console, frozen, scope)
            await handle(await written(decider, wanted, CHAT, f"under a freeze of {scope}"))
            held = await answer_to(people, f"under a freeze of {scope}")
            assert held.outcome is ApplyOutcome.FROZEN
            assert str(scope) in held.message
            assert "by ada: incident 42" in held.message
            assert await replicas(people) == generation

            await order(console, ControlThawed(who="ada", why="over"), scope)
            await handle(await written(decider, wanted, CHAT, f"after {scope} was thawed"))
            answer = await answer_to(people, f"after {scope} was thawed")
            assert answer.outcome is ApplyOutcome.APPLIED
            generation = answer.generation
            assert await replicas(people) == generation


async def test_exactly_the_approved_decision_is_applied(nats_server: NatsServer) -> None:
    async with parties(nats_server) as (decider, bus, console, people):
        (uid,) = await stored(people, workload())
        handle = blind_handler(bus)
        for number, desired in enumerate((3, 4)):
            event = decided(uid, desired, apply="approve")
            await handle(await written(decider, event, CHAT, f"d{number}"))
            answer = await answer_to(people, f"d{number}")
            assert answer.outcome is ApplyOutcome.AWAITING_APPROVAL
        assert await replicas(people) == 1

        late = ControlApproved(who="ada", why="fine", decision_id="d0")
        await handle(await written(console, late, CHAT, "approval of d0"))
        refused = await answer_to(people, "d0")
        assert refused.outcome is ApplyOutcome.CONFLICT
        assert "superseded by d1, which wants 4" in refused.message
        assert await replicas(people) == 1

        right = ControlApproved(who="ada", why="fine", decision_id="d1")
        await handle(await written(console, right, CHAT, "approval of d1"))
        assert (await answer_to(people, "d1")).outcome is ApplyOutcome.APPLIED
        assert await replicas(people) == 4


async def test_an_approved_mix_is_applied_to_each_of_its_targets(nats_server: NatsServer) -> None:
    async with parties(nats_server, Service.OPTIMIZER) as (decider, bus, console, people):
        targets = (CHAT, SPARE)
        uids = await stored(people, *(workload(key.name) for key in targets))
        handle = blind_handler(bus)
        shares = [
            Allocation(target=str(key), uid=uid, generation=1, current=1, desired=number)
            for number, (key, uid) in enumerate(zip(targets, uids, strict=True), start=2)
        ]
        mix = ScalingAllocated(
            allocations=shares, apply="approve", cost=1, optimal_cost=1, record=RECORD
        )
        await handle(await written(decider, mix, BINDING, "d1"))
        approval = ControlApproved(who="ada", why="fine", decision_id="d1", policy=str(BINDING))
        for key in targets:
            waiting = await answer_to(people, "d1", key)
            assert waiting.outcome is ApplyOutcome.AWAITING_APPROVAL
            await handle(await written(console, approval, key, f"approval of {key}"))
            assert (await answer_to(people, "d1", key)).outcome is ApplyOutcome.APPLIED
        assert [await replicas(people, key) for key in targets] == [2, 3]


async def test_advice_is_never_applied_whatever_is_approved(nats_server: NatsServer) -> None:
    async with parties(nats_server) as (decider, bus, console, people):
        (uid,) = await stored(people, workload())
        handle = blind_handler(bus)
        await handle(await written(decider, decided(uid, 3, apply="advise"), CHAT, "d1"))
        approval = ControlApproved(who="ada", why="fine", decision_id="d1")
        await handle(await written(console, approval, CHAT, "approval of d1"))
        outcomes = [
            one.data.outcome
            for one in await answers(people)
            if isinstance(one.data, ScalingApplied)
        ]
        assert outcomes == [ApplyOutcome.ADVISED, ApplyOutcome.ADVISED]
        assert await replicas(people) == 1
