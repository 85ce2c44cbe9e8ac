"""What others are told of a cluster's objects: each change once, each end, and nothing after a
restart."""

from inferbus_contracts.events.spec import SpecChanged
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.services import Service
from inferbus_shared.bus.bus import Bus
from tests.support.eventually import eventually
from tests.support.kube import KubeServer
from tests.support.kube_calls import KubeCalls
from tests.support.kube_watcher import (
    Document,
    cluster_watcher,
    create,
    definitions,
    fact,
    facts_in,
    install,
    place,
    saying,
)
from tests.support.nats import NatsServer
from tests.support.platform import model_manifests


def serving(name: str = "chat", replicas: int = 2) -> Document:
    found, _, _ = model_manifests(name)
    found["metadata"].pop("namespace", None)
    return {**found, "spec": {**found["spec"], "replicas": replicas}}


async def test_an_object_is_told_changed_and_ended(
    nats_server: NatsServer, kube_server: KubeServer, kube_calls: KubeCalls, namespace: str
) -> None:
    await install(kube_calls, *definitions())
    key = ObjectKey("ModelServing", namespace, "chat")
    async with (
        cluster_watcher(nats_server, kube_server, namespace),
        nats_server.bus(Service.CLI) as bus,
    ):
        made = await create(kube_calls, serving(), namespace)
        first = await told(bus, key, generation=1)
        assert first.uid == made["metadata"]["uid"]
        assert first.changed_by == "kubectl-create"
        assert first.object["spec"]["replicas"] == 2
        assert "status" not in first.object
        assert not {"managedFields", "resourceVersion"} & first.object["metadata"].keys()

        path = place("ModelServing", namespace, "chat")
        edit = {"spec": {"replicas": 3}}
        await kube_calls.merge(path, edit, fieldManager="kubectl-edit")
        second = await told(bus, key, generation=2)
        assert (second.object["spec"]["replicas"], second.changed_by) == (3, "kubectl-edit")

        await kube_calls.delete(path)
        last = await eventually(lambda: ended(bus, key))
        assert last.uid == first.uid
        await eventually(lambda: has_facts(nats_server, namespace, 3))


async def told(bus: Bus, key: ObjectKey, *, generation: int) -> SpecChanged:
    async def is_told() -> SpecChanged | None:
        last = await fact(bus, key)
        return last if last and last.generation == generation else None

    found = await eventually(is_told, what=f"{key} is told at generation {generation}")
    assert found is not None
    return found


async def ended(bus: Bus, key: ObjectKey) -> SpecChanged | None:
    last = await fact(bus, key)
    return last if last and last.deleted else None


async def has_facts(server: NatsServer, namespace: str, number: int) -> bool:
    return sum((await facts_in(server, namespace)).values()) == number


async def test_a_status_is_written_once_and_is_no_news(
    nats_server: NatsServer, kube_server: KubeServer, kube_calls: KubeCalls, namespace: str
) -> None:
    await install(kube_calls, *definitions())
    async with cluster_watcher(nats_server, kube_server, namespace):
        await create(kube_calls, serving(), namespace)
        said = await saying(
            kube_calls, "ModelServing", namespace, "chat", Accepted=("True", "Accepted")
        )
        await eventually(lambda: has_facts(nats_server, namespace, 1))
        version = said["metadata"]["resourceVersion"]
        other = {"status": {"replicas": 2}}
        path = place("ModelServing", namespace, "chat", "status")
        written = await kube_calls.merge(path, other, fieldManager="reconciler")
        assert written.ok
        await create(kube_calls, serving("next"), namespace)
        await saying(kube_calls, "ModelServing", namespace, "next", Accepted=("True", "Accepted"))
        now = await kube_calls.get(place("ModelServing", namespace, "chat"))
        assert now.revision == written.revision != version
        assert now.body["status"]["replicas"] == 2
        await eventually(lambda: has_facts(nats_server, namespace, 2))
