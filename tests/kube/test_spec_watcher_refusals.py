"""What the API server lets in and admission refuses: told once, and no fact until it is right."""

from inferbus_contracts.errors import ErrorCode
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.services import Service
from inferbus_shared.bus.bus import Bus
from tests.kube.short_kinds import binding, policy
from tests.kube.test_spec_watcher_facts import serving, told
from tests.support.eventually import eventually
from tests.support.kube import KubeServer
from tests.support.kube_calls import KubeCalls
from tests.support.kube_watcher import (
    Document,
    cluster_watcher,
    create,
    definitions,
    events_about,
    fact,
    install,
    place,
    rejection,
    saying,
)
from tests.support.nats import NatsServer

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


async def test_what_is_refused_is_told_and_stops_no_other(
    nats_server: NatsServer, kube_server: KubeServer, kube_calls: KubeCalls, namespace: str
) -> None:
    await install(kube_calls, *definitions())
    key = ObjectKey("ModelServing", namespace, "chat")
    async with (
        cluster_watcher(nats_server, kube_server, namespace),
        nats_server.bus(Service.CLI) as bus,
    ):
        made = await create(kube_calls, refused(), namespace)
        await create(kube_calls, serving("right"), namespace)
        await told(bus, ObjectKey("ModelServing", namespace, "right"), generation=1)
        said = await saying(kube_calls, "ModelServing", namespace, "chat", Accepted=REFUSED)
        (accepted,) = [one for one in said["status"]["conditions"] if one["type"] == "Accepted"]
        await eventually(lambda: is_refused(bus, key))
        last = await rejection(bus, key)
        assert last is not None
        assert (last.manager, str(last.problems[0])) == ("kubectl-create", accepted["message"])
        assert await fact(bus, key) is None
        uid = made["metadata"]["uid"]
        await eventually(lambda: has_event(kube_calls, namespace, uid, ("Warning", "Invalid")))

        right = {"metadata": {"annotations": None}}
        assert (await kube_calls.merge(place("ModelServing", namespace, "chat"), right)).ok
        await told(bus, key, generation=1)
        await saying(kube_calls, "ModelServing", namespace, "chat", Accepted=ACCEPTED)
        await eventually(lambda: has_event(kube_calls, namespace, uid, ("Normal", "Accepted")))


async def has_event(calls: KubeCalls, namespace: str, uid: str, event: tuple[str, str]) -> bool:
    return event in await events_about(calls, namespace, uid)


async def test_a_refused_edit_leaves_the_last_fact_standing(
    nats_server: NatsServer, kube_server: KubeServer, kube_calls: KubeCalls, namespace: str
) -> None:
    await install(kube_calls, *definitions())
    key = ObjectKey("ModelServing", namespace, "chat")
    path = place("ModelServing", namespace, "chat")
    async with nats_server.bus(Service.CLI) as bus:
        async with cluster_watcher(nats_server, kube_server, namespace):
            await create(kube_calls, serving(), namespace)
            first = await told(bus, key, generation=1)
            assert (await kube_calls.merge(path, BAD_MODE)).ok
            await saying(kube_calls, "ModelServing", namespace, "chat", Accepted=REFUSED)
            assert await fact(bus, key) == first
        before = await bus.last("spec.rejected", key)
        async with cluster_watcher(nats_server, kube_server, namespace):
            await create(kube_calls, serving("later"), namespace)
            await told(bus, ObjectKey("ModelServing", namespace, "later"), generation=1)
            assert await fact(bus, key) == first
            after = await bus.last("spec.rejected", key)
            assert before is not None
            assert after is not None
            assert before.id == after.id
            await kube_calls.delete(path)
            await eventually(lambda: is_ended(bus, key))


async def is_ended(bus: Bus, key: ObjectKey) -> bool:
    last = await fact(bus, key)
    return last is not None and last.deleted


async def test_a_binding_is_a_fact_once_its_policy_is_there(
    nats_server: NatsServer, kube_server: KubeServer, kube_calls: KubeCalls, namespace: str
) -> None:
    await install(kube_calls, *definitions())
    key = ObjectKey("AutoscalingPolicyBinding", namespace, "bind")
    async with (
        cluster_watcher(nats_server, kube_server, namespace),
        nats_server.bus(Service.CLI) as bus,
    ):
        await create(kube_calls, binding("bind", "pol", "chat"), namespace)
        await saying(kube_calls, key.kind, namespace, "bind", Accepted=REFUSED)
        await eventually(lambda: is_refused(bus, key))
        last = await rejection(bus, key)
        assert last is not None
        assert last.problems[0].code is ErrorCode.MISSING_REFERENCE
        await create(kube_calls, policy("pol"), namespace)
        await told(bus, key, generation=1)
        await saying(kube_calls, key.kind, namespace, "bind", Accepted=ACCEPTED)
