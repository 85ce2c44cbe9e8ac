"""What a spec-watcher does to objects of itself: stamps, offers, and whose a name is."""

import uuid
from pathlib import Path

import yaml

from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.services import Service
from inferbus_shared.kube.client import KubeClient
from inferbus_shared.kube.resources import resource_of
from inferbus_shared.kube.settings import KubeSettings
from inferbus_spec_watcher.announcer import decision_of
from tests.kube.short_kinds import open_model, playground
from tests.kube.test_spec_watcher_children import CHILDREN, EXPANDED, play
from tests.kube.test_spec_watcher_facts import serving, told
from tests.support.eventually import eventually
from tests.support.kube import KubeServer
from tests.support.kube_calls import KubeCalls
from tests.support.kube_watcher import (
    LEADER_WORKER_SETS,
    Cluster,
    Document,
    cluster_watcher,
    create,
    definitions,
    fact,
    install,
    place,
    read,
    saying,
    there,
)
from tests.support.nats import NatsServer

FAMILY = "llmaz.io/model-family-name"


async def test_models_are_stamped_and_a_time_that_was_set_stays(cluster: Cluster) -> None:
    """Ruling 6 of precedence; llmaz spec 1.6."""
    name = f"m-{uuid.uuid4().hex[:8]}"
    path = place("OpenModel", "", name)
    async with cluster.watcher():
        await create(cluster.calls, open_model(name), cluster.namespace)
        found = await eventually(lambda: stamped(cluster.calls, name, "opt"))
        created = found["spec"]["createdAt"]
        managers = {one["manager"] for one in found["metadata"]["managedFields"]}
        assert "inferbus-spec-watcher" in managers
        change = {"spec": {"familyName": "llama"}}
        assert (await cluster.calls.merge(path, change)).ok
        found = await eventually(lambda: stamped(cluster.calls, name, "llama"))
        assert found["spec"]["createdAt"] == created
        mine = {"metadata": {"labels": {FAMILY: "mine"}}}
        assert (await cluster.calls.merge(path, mine)).ok
        await eventually(lambda: stamped(cluster.calls, name, "llama"))


async def stamped(calls: KubeCalls, name: str, family: str) -> Document | None:
    found = await there(calls, "OpenModel", "", name)
    has_time = "createdAt" in found["spec"]
    return found if has_time and found["metadata"]["labels"].get(FAMILY) == family else None


def route(model: str) -> Document:
    return {
        "apiVersion": "networking.serving.volcano.sh/v1alpha1",
        "kind": "ModelRoute",
        "metadata": {"name": "play"},
        "spec": {
            "modelName": model,
            "rules": [{"name": "all", "targetModels": [{"modelServerName": "elsewhere"}]}],
        },
    }


async def test_a_route_that_a_user_applies_wins_and_comes_back_when_it_goes(
    cluster: Cluster,
) -> None:
    """Ruling "routing", whichever came first."""
    path = place("ModelRoute", cluster.namespace, "play")
    async with cluster.watcher():
        await play(cluster.calls, cluster.namespace)
        for kind, name in CHILDREN:
            await there(cluster.calls, kind, cluster.namespace, name)
        own = {**route("mine"), "metadata": {"name": "play", "namespace": cluster.namespace}}
        await cluster.calls.delete(path)
        assert (await cluster.calls.apply(path, own, manager="kubectl", force="true")).ok
        await saying(
            cluster.calls, "Service", cluster.namespace, "play", RouteTaken=("True", "RouteTaken")
        )

        async def is_whole() -> bool:
            found = await there(cluster.calls, "ModelRoute", cluster.namespace, "play")
            (rule,) = found["spec"]["rules"]
            is_theirs = "ownerReferences" not in found["metadata"]
            return is_theirs and (found["spec"]["modelName"], rule["name"]) == ("mine", "all")

        await eventually(is_whole)
        await cluster.calls.delete(path)
        await saying(
            cluster.calls, "Service", cluster.namespace, "play", RouteTaken=("False", "Resolved")
        )
        again = await there(cluster.calls, "ModelRoute", cluster.namespace, "play")
        assert again["metadata"]["ownerReferences"][0]["kind"] == "Service"


async def test_a_rendered_route_that_a_user_applies_becomes_theirs(
    nats_server: NatsServer, fake_kube_server: KubeServer
) -> None:
    async with fake_kube_server.calls() as calls:
        await install(calls, *definitions(), LEADER_WORKER_SETS)
        async with cluster_watcher(nats_server, fake_kube_server):
            await play(calls, "default")
            path = place("ModelRoute", "default", "play")
            rendered = await there(calls, "ModelRoute", "default", "play")
            plain = {"kind": "ModelRoute", "apiVersion": rendered["apiVersion"]}
            own = {**plain, "metadata": {"name": "play"}, "spec": rendered["spec"]}
            await calls.apply(path, own, manager="kubectl", force="true")

            async def is_given_up() -> bool:
                found = await there(calls, "ModelRoute", "default", "play")
                managers = {one["manager"] for one in found["metadata"]["managedFields"]}
                owned = "ownerReferences" in found["metadata"]
                return "inferbus-expander" not in managers and not owned

            await eventually(is_given_up)
            kept = await there(calls, "ModelRoute", "default", "play")
            assert kept["metadata"]["uid"] == rendered["metadata"]["uid"]
            await saying(calls, "Service", "default", "play", RouteTaken=("True", "RouteTaken"))


async def test_what_is_built_in_gives_way_to_a_runtime_of_that_name(
    nats_server: NatsServer, fake_kube_server: KubeServer
) -> None:
    async with fake_kube_server.calls() as calls:
        await install(calls, *definitions())
        path = place("BackendRuntime", "", "vllm")
        async with cluster_watcher(nats_server, fake_kube_server):
            built_in = await there(calls, "BackendRuntime", "", "vllm")
            assert "lifecycle" in built_in["spec"]
            own = {
                "apiVersion": built_in["apiVersion"],
                "kind": "BackendRuntime",
                "metadata": {"name": "vllm"},
                "spec": {"image": "mine", "version": "1", "command": ["run"]},
            }
            await calls.apply(path, own, manager="kubectl", force="true")

            async def is_theirs() -> bool:
                found = await there(calls, "BackendRuntime", "", "vllm")
                return found["spec"]["image"] == "mine" and "lifecycle" not in found["spec"]

            await eventually(is_theirs)
            await calls.delete(path)
            back = await there(calls, "BackendRuntime", "", "vllm")
            assert back["spec"]["image"] == built_in["spec"]["image"]


async def test_only_namespaces_of_the_list_are_looked_at(cluster: Cluster) -> None:
    other = f"{cluster.namespace}-other"
    assert (await cluster.calls.post("/api/v1/namespaces", {"metadata": {"name": other}})).ok
    inside, outside = (ObjectKey("ModelServing", one, "chat") for one in (cluster.namespace, other))
    async with cluster.nats.bus(Service.CLI) as bus:
        async with cluster_watcher(cluster.nats, cluster.server, cluster.namespace, other):
            await create(cluster.calls, serving(), other)
            first = await told(bus, outside, generation=1)
        async with cluster.watcher():
            await create(cluster.calls, serving("ignored"), other)
            await create(cluster.calls, serving(), cluster.namespace)
            await told(bus, inside, generation=1)
            await saying(
                cluster.calls,
                "ModelServing",
                cluster.namespace,
                "chat",
                Accepted=("True", "Accepted"),
            )
            ignored = await there(cluster.calls, "ModelServing", other, "ignored")
            assert "status" not in ignored
            assert await fact(bus, ObjectKey("ModelServing", other, "ignored")) is None
            assert await fact(bus, outside) == first, "of what isn't looked at nothing is known"


async def test_a_decision_through_the_scale_subresource_is_told_as_one(cluster: Cluster) -> None:
    """As the workload-reconciler carries decisions out: the id, then the number."""
    key = ObjectKey("ModelServing", cluster.namespace, "chat")
    way = KubeSettings.model_validate(cluster.server.settings(Service.WORKLOAD_RECONCILER))
    async with (
        cluster.watcher(),
        cluster.nats.bus(Service.CLI) as bus,
        KubeClient(way) as client,
    ):
        await create(cluster.calls, serving(), cluster.namespace)
        await told(bus, key, generation=1)
        note = {"metadata": {"annotations": {"inferbus.dev/decision-id": "d1"}}}
        path = place("ModelServing", cluster.namespace, "chat")
        assert (await cluster.calls.merge(path, note, fieldManager="scale")).ok
        await client.set_scale(resource_of(key.kind), cluster.namespace, "chat", 5, manager="scale")
        found = await told(bus, key, generation=2)
        assert (found.changed_by, decision_of(found)) == ("scale", "d1")


async def test_a_folder_is_applied_to_the_cluster(cluster: Cluster, tmp_path: Path) -> None:
    folder = tmp_path / "manifests"
    folder.mkdir()
    name = f"m-{uuid.uuid4().hex[:8]}"
    pair = [open_model(name), playground("play", name)]
    pair[1]["metadata"]["namespace"] = cluster.namespace
    (folder / "play.yaml").write_text(yaml.safe_dump_all(pair))
    async with cluster.watcher(folder=folder):
        await saying(cluster.calls, "Playground", cluster.namespace, "play", Expanded=EXPANDED)
        (folder / "play.yaml").unlink()

        async def is_gone() -> bool:
            return await read(cluster.calls, "Playground", cluster.namespace, "play") is None

        await eventually(is_gone)
