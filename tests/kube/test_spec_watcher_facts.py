"""What others are told of a cluster's objects: each change once, each end, and nothing after a
restart."""

from inferbus_contracts.events.spec import SpecChanged
from inferbus_contracts.keys import ObjectKey
from inferbus_shared.bus.bus import Bus
from tests.support.eventually import eventually
from tests.support.kube_watcher import (
    Cluster,
    Document,
    create,
    fact,
    facts_in,
    place,
    saying,
)
from tests.support.nats import NatsServer
from tests.support.platform import model_manifests


def serving(name: str = "chat", replicas: int = 2) -> Document:
    found, _, _ = model_manifests(name)
    found["metadata"].pop("namespace", None)
    return {**found, "spec": {**found["spec"], "replicas": replicas}}


async def test_an_object_is_told_changed_and_ended(cluster: Cluster) -> None:
    key = ObjectKey("ModelServing", cluster.namespace, "chat")
    async with cluster.watched() as bus:
        made = await create(cluster.calls, serving(), cluster.namespace)
        first = await told(bus, key, generation=1)
        assert first.uid == made["metadata"]["uid"]
        assert first.changed_by == "kubectl-create"
        assert first.object["spec"]["replicas"] == 2
        assert "status" not in first.object
        assert not {"managedFields", "resourceVersion"} & first.object["metadata"].keys()

        path = place("ModelServing", cluster.namespace, "chat")
        edit = {"spec": {"replicas": 3}}
        await cluster.calls.merge(path, edit, fieldManager="kubectl-edit")
        second = await told(bus, key, generation=2)
        assert (second.object["spec"]["replicas"], second.changed_by) == (3, "kubectl-edit")

        await cluster.calls.delete(path)
        last = await eventually(lambda: ended(bus, key))
        assert last.uid == first.uid
        await eventually(lambda: has_facts(cluster.nats, cluster.namespace, 3))


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


async def test_a_status_is_written_once_and_is_no_news(cluster: Cluster) -> None:
    async with cluster.watcher():
        await create(cluster.calls, serving(), cluster.namespace)
        said = await saying(
            cluster.calls, "ModelServing", cluster.namespace, "chat", Accepted=("True", "Accepted")
        )
        await eventually(lambda: has_facts(cluster.nats, cluster.namespace, 1))
        version = said["metadata"]["resourceVersion"]
        other = {"status": {"replicas": 2}}
        path = place("ModelServing", cluster.namespace, "chat", "status")
        written = await cluster.calls.merge(path, other, fieldManager="reconciler")
        assert written.ok
        await create(cluster.calls, serving("next"), cluster.namespace)
        await saying(
            cluster.calls, "ModelServing", cluster.namespace, "next", Accepted=("True", "Accepted")
        )
        now = await cluster.calls.get(place("ModelServing", cluster.namespace, "chat"))
        assert now.revision == written.revision != version
        assert now.body["status"]["replicas"] == 2
        await eventually(lambda: has_facts(cluster.nats, cluster.namespace, 2))
