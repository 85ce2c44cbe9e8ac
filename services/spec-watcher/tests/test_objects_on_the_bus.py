"""The object API against a real server: Kubernetes' semantics, all or nothing, one fact each."""

import asyncio
from typing import Any

import pytest
from watching import apply, spec_watcher

from inferbus_contracts.api.objects import (
    Change,
    DeleteReply,
    DeleteRequest,
    GetRequest,
    ListReply,
    ListRequest,
    ObjectReply,
    ObjectVerb,
    Preconditions,
    ScaleReply,
    ScaleRequest,
    StatusReply,
    StatusRequest,
    object_subject,
)
from inferbus_contracts.errors import ErrorCode, ProblemsError
from inferbus_contracts.services import Service
from inferbus_contracts.subjects import wildcard
from inferbus_shared.bus.bus import Bus
from inferbus_shared.bus.jetstream import api
from tests.support.eventually import eventually
from tests.support.nats import NatsServer


def serving(name: str, replicas: int = 1) -> dict[str, Any]:
    role = {
        "name": "main",
        "workerReplicas": 0,
        "entryTemplate": {"spec": {"containers": [{"name": "engine", "image": "vllm/vllm:x"}]}},
    }
    return {
        "apiVersion": "workload.serving.volcano.sh/v1alpha1",
        "kind": "ModelServing",
        "metadata": {"name": name},
        "spec": {"replicas": replicas, "schedulerName": "volcano", "template": {"roles": [role]}},
    }


async def get(bus: Bus, key: str) -> dict[str, Any]:
    reply = await bus.ask(object_subject(ObjectVerb.GET), GetRequest(key=key), ObjectReply)
    assert reply.object is not None
    return reply.object


async def with_condition(bus: Bus, key: str, type_: str) -> dict[str, Any] | None:
    """The object once it says so; what another writer put into its status stands beside it."""
    stored = await get(bus, key)
    told = [one["type"] for one in stored.get("status", {}).get("conditions", ())]
    return stored if type_ in told else None


async def facts(server: NatsServer) -> int:
    """Facts about ModelServings: what comes with the platform doesn't count."""
    about = wildcard("spec.changed", "ModelServing")
    async with server.connection() as connection:
        info = await api(connection, "STREAM.INFO.FACTS", {"subjects_filter": about})
        return sum((info["state"].get("subjects") or {}).values())


async def test_apply_scale_status_and_delete_change_what_they_should(
    nats_server: NatsServer,
) -> None:
    async with spec_watcher(nats_server), nats_server.bus(Service.WORKLOAD_RECONCILER) as bus:
        first = (await apply(bus, serving("a"))).results[0]
        assert (first.change, first.generation) == (Change.CREATED, 1)
        again = (await apply(bus, serving("a"))).results[0]
        assert (again.change, again.generation) == (Change.UNCHANGED, 1)
        await eventually(lambda: is_at(nats_server, 1))

        scale = ScaleRequest(
            key="ModelServing/default/a",
            replicas=3,
            decision_id="d1",
            preconditions=Preconditions(uid=first.uid, generation=1),
        )
        subject = object_subject(ObjectVerb.SCALE)
        for _ in range(2):
            reply = await bus.ask(subject, scale, ScaleReply)
            assert (reply.changed, reply.replicas, reply.generation) == (True, 3, 2)
        late = scale.model_copy(update={"decision_id": "d2", "replicas": 5})
        with pytest.raises(ProblemsError) as caught:
            await bus.ask(subject, late, ScaleReply)
        assert caught.value.problems[0].code is ErrorCode.CONFLICT
        await eventually(lambda: is_at(nats_server, 2))

        status = StatusRequest(key=scale.key, status={"replicas": 3})
        await bus.ask(object_subject(ObjectVerb.STATUS), status, StatusReply)
        stored = await eventually(lambda: with_condition(bus, scale.key, "Accepted"))
        assert stored["status"]["replicas"] == 3
        assert stored["metadata"]["generation"] == 2

        gone = DeleteRequest(key=scale.key, preconditions=Preconditions(uid="another"))
        with pytest.raises(ProblemsError):
            await bus.ask(object_subject(ObjectVerb.DELETE), gone, DeleteReply)
        await bus.ask(object_subject(ObjectVerb.DELETE), DeleteRequest(key=scale.key), DeleteReply)
        await eventually(lambda: is_at(nats_server, 3))
        with pytest.raises(ProblemsError) as caught:
            await get(bus, scale.key)
        assert caught.value.problems[0].code is ErrorCode.NOT_FOUND
        reborn = (await apply(bus, serving("a"))).results[0]
        assert reborn.change is Change.CREATED
        assert reborn.uid != first.uid


async def is_at(server: NatsServer, count: int) -> bool:
    return await facts(server) == count


async def test_a_unit_is_stored_whole_or_not_at_all(nats_server: NatsServer) -> None:
    async with spec_watcher(nats_server), nats_server.bus(Service.CLI) as bus:
        broken = serving("c")
        broken["spec"]["replica"] = 3
        with pytest.raises(ProblemsError) as caught:
            await apply(bus, serving("a"), serving("b"), broken)
        problem = caught.value.problems[0]
        assert problem.code is ErrorCode.UNKNOWN_FIELD
        assert (problem.file, problem.field) == ("test.yaml", "spec.replica")
        listed = await bus.ask(
            object_subject(ObjectVerb.LIST), ListRequest(kind="ModelServing"), ListReply
        )
        assert listed.objects == []
        results = (await apply(bus, serving("a"), serving("b"), serving("c"))).results
        assert [item.change for item in results] == [Change.CREATED] * 3


async def test_children_go_with_their_owner(nats_server: NatsServer) -> None:
    async with spec_watcher(nats_server), nats_server.bus(Service.WORKLOAD_RECONCILER) as bus:
        owner = (await apply(bus, serving("a"))).results[0]
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": "a-0",
                "ownerReferences": [
                    {
                        "apiVersion": "workload.serving.volcano.sh/v1alpha1",
                        "kind": "ModelServing",
                        "name": "a",
                        "uid": owner.uid,
                        "controller": True,
                    }
                ],
            },
            "spec": {"containers": [{"name": "c"}], "terminationGracePeriodSeconds": 7},
        }
        await apply(bus, pod, manager="workload-reconciler")
        delete = object_subject(ObjectVerb.DELETE)
        await bus.ask(delete, DeleteRequest(key="ModelServing/default/a"), DeleteReply)

        async def marked() -> bool:
            metadata = (await get(bus, "Pod/default/a-0"))["metadata"]
            return bool(metadata.get("deletionGracePeriodSeconds") == 7)

        await eventually(marked)
        final = DeleteRequest(key="Pod/default/a-0", final=True)
        await bus.ask(delete, final, DeleteReply)
        with pytest.raises(ProblemsError):
            await get(bus, "Pod/default/a-0")


async def test_restarts_and_a_second_instance_add_no_fact(nats_server: NatsServer) -> None:
    async with spec_watcher(nats_server), nats_server.bus(Service.CLI) as bus:
        await apply(bus, *(serving(f"m{number}") for number in range(5)))
        await eventually(lambda: is_at(nats_server, 5))
    for _ in range(3):
        async with (
            spec_watcher(nats_server),
            spec_watcher(nats_server, "second"),
            nats_server.bus(Service.CLI) as bus,
        ):
            results = (await apply(bus, serving("m0"))).results
            assert results[0].change is Change.UNCHANGED
    assert await is_at(nats_server, 5)


async def test_two_instances_take_writes_at_once_and_lose_none(nats_server: NatsServer) -> None:
    async with (
        spec_watcher(nats_server, "first"),
        spec_watcher(nats_server, "second"),
        nats_server.bus(Service.CLI) as bus,
    ):
        await asyncio.gather(*(apply(bus, serving(f"m{number}")) for number in range(40)))
        await asyncio.gather(*(apply(bus, serving("m0", number)) for number in range(2, 10)))
        stored = await get(bus, "ModelServing/default/m0")
        assert stored["metadata"]["generation"] == 9
        await eventually(lambda: is_at_least(nats_server, 41))


async def is_at_least(server: NatsServer, count: int) -> bool:
    return await facts(server) >= count
