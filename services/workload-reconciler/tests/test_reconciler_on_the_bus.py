"""The reconciler with a spec-watcher's stand-in for pods: real bus, real object API, no node agent.

The spec-watcher is the program it is, because services don't import one another.
"""

import contextlib
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from inferbus_contracts.api.objects import AppliedDocument, Preconditions
from inferbus_contracts.events.scaling import (
    ApplyOutcome,
    DecisionRecord,
    ScalingApplied,
    ScalingDecided,
)
from inferbus_contracts.events.workload import WorkloadObserved
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.services import Service
from inferbus_shared.bus.bus import Bus
from inferbus_shared.bus.follow import Start
from inferbus_shared.bus.jetstream import api
from inferbus_shared.bus.store import store
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

KEY = ObjectKey("ModelServing", "default", "m")
METRICS = ReconcilerMetrics(CollectorRegistry())


def serving(replicas: int) -> dict[str, Any]:
    role = {
        "name": "main",
        "workerReplicas": 1,
        "entryTemplate": {"spec": {"containers": [{"name": "engine", "image": "vllm:x"}]}},
        "workerTemplate": {"spec": {"containers": [{"name": "engine", "image": "vllm:x"}]}},
    }
    return {
        "apiVersion": "workload.serving.volcano.sh/v1alpha1",
        "kind": "ModelServing",
        "metadata": {"name": "m"},
        "spec": {
            "replicas": replicas,
            "schedulerName": "default-scheduler",
            "template": {"roles": [role]},
        },
    }


@contextlib.asynccontextmanager
async def reconciler(
    server: NatsServer, instance: str = "r", **settings: Any
) -> AsyncIterator[None]:
    async with running_service(server, serve, WorkloadReconcilerSettings(**settings), instance):
        yield


async def run_pods(client: ObjectClient) -> list[str]:
    """What a node agent would do: every pod runs and is ready; marked ones end."""
    for pod in await client.find("Pod"):
        metadata = pod["metadata"]
        key = ObjectKey("Pod", metadata["namespace"], metadata["name"])
        if metadata.get("deletionTimestamp"):
            await client.delete(key, Preconditions(uid=metadata["uid"]), final=True)
        elif "status" not in pod:
            ready = {
                "type": "Ready",
                "status": "True",
                "lastTransitionTime": metadata["creationTimestamp"],
            }
            status = {"phase": "Running", "podIP": "127.1.0.2", "conditions": [ready]}
            await client.set_status(key, status, Preconditions(uid=metadata["uid"]))
    return [pod["metadata"]["name"] for pod in await client.find("Pod")]


async def last_fact(bus: Bus) -> WorkloadObserved:
    event = await bus.last("workload.observed", KEY)
    assert event is not None
    assert isinstance(event.data, WorkloadObserved)
    return event.data


async def settled(bus: Bus, client: ObjectClient, groups: int) -> bool:
    await run_pods(client)
    fact = await last_fact(bus)
    return (fact.ready, len(fact.pods), fact.replicas) == (groups, 2 * groups, groups)


async def answers(bus: Bus) -> list[ScalingApplied]:
    return [
        event.data
        async for message in bus.follow("scaling.applied", Start.everything()).snapshot()
        for event in [await bus.read(message)]
        if isinstance(event.data, ScalingApplied) and event.key == KEY
    ]


async def forget_ids(server: NatsServer, bus: Bus) -> None:
    """As the server does by itself when its window is over."""
    async with server.connection() as connection:
        config = (await api(connection, "STREAM.INFO.FACTS"))["config"]
        await api(connection, "STREAM.UPDATE.FACTS", config | {"duplicate_window": 10**8})
    fact = ScalingApplied(
        decision_id="d", outcome=ApplyOutcome.UNCHANGED, replicas=1, generation=1, uid="u"
    )
    probe = bus.event(fact, KEY._replace(name="probe"), id="probe")

    async def is_forgotten() -> bool:
        return not (await store(bus.connection, probe)).duplicate

    assert await is_forgotten()
    await eventually(is_forgotten)


async def sequences(server: NatsServer) -> tuple[int, int]:
    async with server.connection() as connection:
        facts = await api(connection, "STREAM.INFO.FACTS")
        decisions = await api(connection, "STREAM.INFO.DECISIONS")
    return int(facts["state"]["last_seq"]), int(decisions["state"]["last_seq"])


@pytest.mark.usefixtures("spec_watcher")
async def test_a_workload_comes_up_scales_by_decision_and_goes(nats_server: NatsServer) -> None:
    async with (
        reconciler(nats_server),
        nats_server.bus(Service.AUTOSCALER) as decider,
        nats_server.bus(Service.WORKLOAD_RECONCILER, "t") as bus,
        nats_server.bus(Service.CLI) as people,
    ):
        client = ObjectClient(bus, "workload-reconciler")
        user = ObjectClient(people, "cli")
        (made,) = await user.apply([AppliedDocument(object=serving(1))])
        await eventually(lambda: settled(bus, client, 1))

        record = DecisionRecord(decider="d", version="1", policy="p", policy_digest="d", input={})
        decision = ScalingDecided(
            current=1, desired=3, target_uid=made.uid, target_generation=1, record=record
        )
        await decider.publish(decider.event(decision, KEY, id="decision-1"))
        await eventually(lambda: settled(bus, client, 3))
        assert [(item.outcome, item.replicas, item.generation) for item in await answers(bus)] == [
            (ApplyOutcome.APPLIED, 3, 2)
        ]

        before = await sequences(nats_server)
        async with reconciler(nats_server, "second"):
            await settled(bus, client, 3)
        assert await sequences(nats_server) == before, "a second instance has nothing to add"

        await user.delete(KEY)

        async def gone() -> bool:
            return not await run_pods(client) and (await last_fact(bus)).deleted

        await eventually(gone)


@pytest.mark.usefixtures("spec_watcher")
async def test_a_decision_above_a_budget_is_refused_with_its_numbers(
    nats_server: NatsServer,
) -> None:
    document = serving(1)
    (container,) = document["spec"]["template"]["roles"][0]["entryTemplate"]["spec"]["containers"]
    container["resources"] = {"limits": {"nvidia.com/gpu": 1}}
    async with (
        reconciler(nats_server, accelerator_budgets="default/nvidia.com/gpu=2"),
        nats_server.bus(Service.AUTOSCALER) as decider,
        nats_server.bus(Service.WORKLOAD_RECONCILER, "t") as bus,
        nats_server.bus(Service.CLI) as people,
    ):
        user = ObjectClient(people, "cli")
        (made,) = await user.apply([AppliedDocument(object=document)])

        async def known() -> bool:
            return await bus.last("workload.observed", KEY) is not None

        await eventually(known)
        record = DecisionRecord(decider="d", version="1", policy="p", policy_digest="d", input={})
        for number, desired in enumerate((3, 2)):
            decision = ScalingDecided(
                current=1, desired=desired, target_uid=made.uid, target_generation=1, record=record
            )
            await decider.publish(decider.event(decision, KEY, id=f"decision-{number}"))

        async def both_answered() -> bool:
            return len(await answers(bus)) == 2

        await eventually(both_answered)
        refused, done = await answers(bus)
        assert (refused.outcome, refused.replicas) == (ApplyOutcome.FAILED, 1)
        assert refused.message == (
            "3 replicas need 3 nvidia.com/gpu in all, above the budget default/nvidia.com/gpu=2"
        )
        assert (done.outcome, done.replicas) == (ApplyOutcome.APPLIED, 2)


@pytest.mark.usefixtures("spec_watcher")
async def test_a_decision_that_is_handled_twice_is_answered_once(nats_server: NatsServer) -> None:
    async with (
        nats_server.bus(Service.AUTOSCALER) as decider,
        nats_server.bus(Service.WORKLOAD_RECONCILER, "t") as bus,
        nats_server.bus(Service.CLI) as people,
    ):
        (made,) = await ObjectClient(people, "cli").apply([AppliedDocument(object=serving(1))])
        record = DecisionRecord(decider="d", version="1", policy="p", policy_digest="d", input={})
        decision = ScalingDecided(
            current=1, desired=3, target_uid=made.uid, target_generation=1, record=record
        )
        await decider.publish(decider.event(decision, KEY, id="decision-1"))
        decided = await bus.last("scaling.decided", KEY)
        assert decided is not None

        client = ObjectClient(bus, "workload-reconciler")
        substrate = ProcessSubstrate(ObjectPicture(bus), client, "local")
        handler = DecisionHandler(bus, substrate, OrderBook(bus), METRICS)
        for _ in "a crash before the acknowledgement", "and the redelivery":
            await handler.handle(decided, None)
        assert [item.outcome for item in await answers(bus)] == [ApplyOutcome.APPLIED]

        await forget_ids(nats_server, bus)
        await handler.handle(replace(decided, deliveries=2), None)
        assert [item.outcome for item in await answers(bus)] == [ApplyOutcome.APPLIED]


@pytest.mark.usefixtures("spec_watcher")
async def test_a_lost_pod_is_replaced_under_its_name(nats_server: NatsServer) -> None:
    async with (
        reconciler(nats_server),
        nats_server.bus(Service.WORKLOAD_RECONCILER, "t") as bus,
        nats_server.bus(Service.CLI) as people,
    ):
        client = ObjectClient(bus, "workload-reconciler")
        await ObjectClient(people, "cli").apply([AppliedDocument(object=serving(1))])
        await eventually(lambda: settled(bus, client, 1))
        before = {pod.name: pod.uid for pod in (await last_fact(bus)).pods}
        lost = sorted(before)[0]
        await client.delete(ObjectKey("Pod", "default", lost), final=True)

        async def replaced() -> bool:
            await settled(bus, client, 1)
            now = {pod.name: pod.uid for pod in (await last_fact(bus)).pods if pod.ready}
            return now.keys() == before.keys() and now[lost] != before[lost]

        await eventually(replaced)
