"""The object API over a cluster: the same answers as over the bucket, and nobody's work undone."""

import asyncio
from typing import Any

import pytest

from inferbus_contracts.api.objects import (
    AppliedDocument,
    AppliedObject,
    Change,
    Preconditions,
    ScaleReply,
    ScaleRequest,
)
from inferbus_contracts.errors import ErrorCode, ProblemsError
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.services import Service
from inferbus_shared.bus.bus import Bus
from inferbus_shared.objects.client import ObjectClient
from inferbus_spec_watcher.announcer import decision_of
from tests.fakes.kubernetes.faults import Answer
from tests.kube.short_kinds import binding, policy
from tests.kube.test_spec_watcher_facts import serving, told
from tests.support.eventually import eventually
from tests.support.kube_watcher import (
    Cluster,
    Document,
    create,
    fact,
    place,
    read,
    saying,
    there,
)


def inside(document: Document, namespace: str) -> Document:
    return {**document, "metadata": {**document["metadata"], "namespace": namespace}}


def objects(bus: Bus) -> ObjectClient:
    return ObjectClient(bus, "cli")


async def apply(bus: Bus, *documents: Document, **options: bool) -> list[AppliedObject]:
    applied = [AppliedDocument(object=one, file="test.yaml") for one in documents]
    return await objects(bus).apply(applied, **options)


async def scale(bus: Bus, key: ObjectKey, number: int, decision: str, **unmet: Any) -> ScaleReply:
    conditions = Preconditions(**unmet)
    request = ScaleRequest(
        key=str(key), replicas=number, decision_id=decision, preconditions=conditions
    )
    return await objects(bus).scale(request)


async def delete(bus: Bus, key: ObjectKey, **conditions: Any) -> int:
    return await objects(bus).delete(key, Preconditions(**conditions))


async def test_objects_are_applied_read_listed_scaled_and_deleted(cluster: Cluster) -> None:
    key = ObjectKey("ModelServing", cluster.namespace, "chat")
    async with cluster.watched(Service.WORKLOAD_RECONCILER) as bus:
        document = inside(serving(replicas=2), cluster.namespace)
        (tried,) = await apply(bus, document, dry_run=True)
        assert tried.change is Change.CREATED
        assert await read(cluster.calls, *key[:3]) is None
        (first,) = await apply(bus, document)
        assert (first.change, first.generation) == (Change.CREATED, 1)
        (again,) = await apply(bus, document)
        assert (again.change, again.uid) == (Change.UNCHANGED, first.uid)
        listed = await objects(bus).find("ModelServing", cluster.namespace)
        assert [one["metadata"]["uid"] for one in listed] == [first.uid]

        for _ in range(2):
            reply = await scale(bus, key, 4, "d1", uid=first.uid)
            assert (reply.changed, reply.replicas, reply.generation) == (True, 4, 2)
        with pytest.raises(ProblemsError) as caught:
            await scale(bus, key, 5, "d2", generation=1)
        assert caught.value.problems[0].code is ErrorCode.CONFLICT
        scaled = await told(bus, key, generation=2)
        assert (scaled.changed_by, decision_of(scaled)) == ("scale", "d1")
        role = key._replace(role="main")
        assert (await scale(bus, role, 3, "d3")).replicas == 3

        await objects(bus).set_status(key, {"replicas": 4})
        assert (await objects(bus).get(key))["status"]["replicas"] == 4

        with pytest.raises(ProblemsError):
            await delete(bus, key, uid="another")
        assert await delete(bus, key, uid=first.uid) > 0
        with pytest.raises(ProblemsError) as caught:
            await objects(bus).get(key)
        assert caught.value.problems[0].code is ErrorCode.NOT_FOUND
        assert await delete(bus, key) == 0


async def test_a_unit_is_refused_whole(cluster: Cluster) -> None:
    """Also where only the API server knows what is wrong with the last document of it: here that a
    model's name can't be changed (routing spec 1.1), which the fake has to be told."""
    async with cluster.watched() as bus:
        await apply(bus, route("before", cluster.namespace))
        if cluster.server.fake is not None:
            cluster.server.fake.faults.add(Answer(422), verb="apply", resource="modelroutes")
        with pytest.raises(ProblemsError) as caught:
            await apply(
                bus, inside(serving("right"), cluster.namespace), route("after", cluster.namespace)
            )
        assert caught.value.problems[0].code is ErrorCode.KUBE_INVALID
        assert await read(cluster.calls, "ModelServing", cluster.namespace, "right") is None


def route(model: str, namespace: str) -> Document:
    return {
        "apiVersion": "networking.serving.volcano.sh/v1alpha1",
        "kind": "ModelRoute",
        "metadata": {"name": "r", "namespace": namespace},
        "spec": {
            "modelName": model,
            "rules": [{"name": "all", "targetModels": [{"modelServerName": "s"}]}],
        },
    }


async def test_what_isnt_looked_at_is_told_and_left_alone(cluster: Cluster) -> None:
    """Secrets' values above all never leave the API server."""
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}
    async with cluster.watched(Service.WORKLOAD_RECONCILER) as bus:
        for ask in (
            apply(bus, inside(secret, cluster.namespace)),
            apply(bus, inside(serving(), "default")),
            delete(bus, ObjectKey("Pod", cluster.namespace, "p")),
            objects(bus).get(ObjectKey("Pod", cluster.namespace, "p")),
            objects(bus).get(ObjectKey("ModelServing", "default", "chat")),
        ):
            with pytest.raises(ProblemsError) as caught:
                await ask
            (problem,) = caught.value.problems
            assert problem.code is ErrorCode.UNSUPPORTED
            assert "kubectl" in problem.remedy


async def test_what_another_applied_is_taken_over_by_force_alone(cluster: Cluster) -> None:
    path = place("ModelServing", cluster.namespace, "chat")
    async with cluster.watched() as bus:
        theirs = inside(serving(replicas=2), cluster.namespace)
        assert (await cluster.calls.apply(path, theirs, manager="kubectl")).ok
        await told(bus, ObjectKey("ModelServing", cluster.namespace, "chat"), generation=1)
        ours = inside(serving(replicas=5), cluster.namespace)
        with pytest.raises(ProblemsError) as caught:
            await apply(bus, ours)
        (problem,) = caught.value.problems
        assert (problem.code, problem.field) == (
            ErrorCode.FIELD_OWNED_BY_OTHER,
            "spec.replicas",
        )
        assert "kubectl" in problem.message
        (done,) = await apply(bus, ours, force=True)
        assert done.change is Change.CONFIGURED


async def test_applying_again_leaves_the_replicas_that_a_policy_owns(cluster: Cluster) -> None:
    key = ObjectKey("ModelServing", cluster.namespace, "chat")
    async with cluster.watched(Service.WORKLOAD_RECONCILER) as bus:
        await create(cluster.calls, policy("pol"), cluster.namespace)
        await create(cluster.calls, binding("bind", "pol", "chat"), cluster.namespace)
        await saying(
            cluster.calls,
            "AutoscalingPolicyBinding",
            cluster.namespace,
            "bind",
            Accepted=("True", "Accepted"),
        )
        await apply(bus, inside(serving(replicas=2), cluster.namespace))
        edited = inside(serving(replicas=3), cluster.namespace)
        edited["spec"]["template"]["restartGracePeriodSeconds"] = 7
        await apply(bus, edited)
        assert (await objects(bus).get(key))["spec"]["replicas"] == 2, (
            "the applier's own number stays"
        )
        await scale(bus, key, 6, "d1")
        edited["spec"]["template"]["restartGracePeriodSeconds"] = 9
        (done,) = await apply(bus, edited)
        stored = await there(cluster.calls, *key[:3])
        assert stored["spec"]["replicas"] == 6
        assert stored["spec"]["template"]["restartGracePeriodSeconds"] == 9
        assert [one.field for one in done.warnings] == ["spec.replicas"]


async def test_two_instances_take_writes_at_once_and_lose_none(cluster: Cluster) -> None:
    key = ObjectKey("ModelServing", cluster.namespace, "m0")
    async with (
        cluster.watcher("first"),
        cluster.watcher("second"),
        cluster.nats.bus(Service.CLI) as bus,
    ):
        made = (apply(bus, inside(serving(f"m{number}"), cluster.namespace)) for number in range(8))
        await asyncio.gather(*made)
        changed = (
            apply(bus, inside(serving("m0", number), cluster.namespace)) for number in range(3, 9)
        )
        await asyncio.gather(*changed)
        stored = await there(cluster.calls, *key[:3])
        assert stored["metadata"]["generation"] == 7

        async def is_told() -> bool:
            last = await fact(bus, key)
            return last is not None and last.generation == 7

        await eventually(is_told)
