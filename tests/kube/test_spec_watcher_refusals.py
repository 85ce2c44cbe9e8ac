"""What the API server lets in and admission refuses: told once, and no fact until it is right."""

from inferbus_contracts.errors import ErrorCode
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.services import Service
from inferbus_shared.bus.bus import Bus
from tests.kube.short_kinds import binding, policy
from tests.kube.test_spec_watcher_facts import serving, told
from tests.support.eventually import eventually
from tests.support.kube_calls import KubeCalls
from tests.support.kube_watcher import (
    Cluster,
    Document,
    create,
    events_about,
    fact,
    place,
    rejection,
    saying,
)

REFUSED = ("False", "Invalid")
ACCEPTED = ("True", "Accepted")


BAD_MODE: Document = {"metadata": {"annotations": {"inferbus.dev/mode": "sometimes"}}}
"""No schema can say anything about annotations."""


def refused() -> Document:
    document = serving()
    return {**document, "metadata": {**document["metadata"], **BAD_MODE["metadata"]}}


async def is_refused(bus: Bus, key: ObjectKey) -> bool:
    last = await rejection(bus, key)
    return last is not None


async def test_what_is_refused_is_told_and_stops_no_other(cluster: Cluster) -> None:
    key = ObjectKey("ModelServing", cluster.namespace, "chat")
    async with cluster.watched() as bus:
        made = await create(cluster.calls, refused(), cluster.namespace)
        await create(cluster.calls, serving("right"), cluster.namespace)
        await told(bus, ObjectKey("ModelServing", cluster.namespace, "right"), generation=1)
        said = await saying(
            cluster.calls, "ModelServing", cluster.namespace, "chat", Accepted=REFUSED
        )
        (accepted,) = [one for one in said["status"]["conditions"] if one["type"] == "Accepted"]
        await eventually(lambda: is_refused(bus, key))
        last = await rejection(bus, key)
        assert last is not None
        assert (last.manager, str(last.problems[0])) == ("kubectl-create", accepted["message"])
        assert await fact(bus, key) is None
        uid = made["metadata"]["uid"]
        await eventually(
            lambda: has_event(cluster.calls, cluster.namespace, uid, ("Warning", "Invalid"))
        )

        right = {"metadata": {"annotations": None}}
        assert (
            await cluster.calls.merge(place("ModelServing", cluster.namespace, "chat"), right)
        ).ok
        await told(bus, key, generation=1)
        await saying(cluster.calls, "ModelServing", cluster.namespace, "chat", Accepted=ACCEPTED)
        await eventually(
            lambda: has_event(cluster.calls, cluster.namespace, uid, ("Normal", "Accepted"))
        )


async def has_event(calls: KubeCalls, namespace: str, uid: str, event: tuple[str, str]) -> bool:
    return event in await events_about(calls, namespace, uid)


async def test_a_refused_edit_leaves_the_last_fact_standing(cluster: Cluster) -> None:
    key = ObjectKey("ModelServing", cluster.namespace, "chat")
    path = place("ModelServing", cluster.namespace, "chat")
    async with cluster.nats.bus(Service.CLI) as bus:
        async with cluster.watcher():
            await create(cluster.calls, serving(), cluster.namespace)
            first = await told(bus, key, generation=1)
            assert (await cluster.calls.merge(path, BAD_MODE)).ok
            await saying(cluster.calls, "ModelServing", cluster.namespace, "chat", Accepted=REFUSED)
            assert await fact(bus, key) == first
        before = await bus.last("spec.rejected", key)
        async with cluster.watcher():
            await create(cluster.calls, serving("later"), cluster.namespace)
            await told(bus, ObjectKey("ModelServing", cluster.namespace, "later"), generation=1)
            assert await fact(bus, key) == first
            after = await bus.last("spec.rejected", key)
            assert before is not None
            assert after is not None
            assert before.id == after.id
            await cluster.calls.delete(path)
            await eventually(lambda: is_ended(bus, key))


async def is_ended(bus: Bus, key: ObjectKey) -> bool:
    last = await fact(bus, key)
    return last is not None and last.deleted


async def test_a_binding_is_a_fact_once_its_policy_is_there(cluster: Cluster) -> None:
    key = ObjectKey("AutoscalingPolicyBinding", cluster.namespace, "bind")
    async with cluster.watched() as bus:
        await create(cluster.calls, binding("bind", "pol", "chat"), cluster.namespace)
        await saying(cluster.calls, key.kind, cluster.namespace, "bind", Accepted=REFUSED)
        await eventually(lambda: is_refused(bus, key))
        last = await rejection(bus, key)
        assert last is not None
        assert last.problems[0].code is ErrorCode.MISSING_REFERENCE
        await create(cluster.calls, policy("pol"), cluster.namespace)
        await told(bus, key, generation=1)
        await saying(cluster.calls, key.kind, cluster.namespace, "bind", Accepted=ACCEPTED)
