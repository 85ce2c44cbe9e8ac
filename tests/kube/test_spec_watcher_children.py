"""Children of short objects on a cluster: they come, are put right, go, and are quiet at rest."""

import uuid

from tests.kube.short_kinds import booster, examples, open_model, playground
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
    events_about,
    facts_in,
    install,
    place,
    read,
    saying,
    there,
)
from tests.support.nats import NatsServer

CHILDREN = (
    ("Service", "play"),
    ("LeaderWorkerSet", "play"),
    ("CoreService", "play-lb"),
    ("ModelServer", "play"),
    ("ModelRoute", "play"),
)
EXPANDED = ("True", "ChildrenRendered")
NEW = ("first", "second", "third")
"""Names of what comes with each restart."""


async def play(calls: KubeCalls, namespace: str) -> str:
    """A model and a Playground of it; the model's name, of which there is one in a cluster."""
    model = f"m-{uuid.uuid4().hex[:8]}"
    await create(calls, open_model(model), namespace)
    await create(calls, playground("play", model), namespace)
    return model


async def children(calls: KubeCalls, namespace: str) -> list[Document]:
    return [await there(calls, kind, namespace, name) for kind, name in CHILDREN]


async def test_a_playground_becomes_its_children(cluster: Cluster) -> None:
    async with cluster.watcher():
        await play(cluster.calls, cluster.namespace)
        found = await children(cluster.calls, cluster.namespace)
        parent = await saying(
            cluster.calls, "Playground", cluster.namespace, "play", Expanded=EXPANDED
        )
        owners = [one["metadata"]["ownerReferences"][0] for one in found]
        assert owners[0]["uid"] == parent["metadata"]["uid"]
        assert {one["uid"] for one in owners[1:]} == {found[0]["metadata"]["uid"]}
        assert all(one["controller"] for one in owners)
        assert parent["status"]["observedGeneration"] == 1
        assert parent["metadata"]["labels"]["llmaz.io/model-name"]
        uid = parent["metadata"]["uid"]

        async def is_told() -> bool:
            told = await events_about(cluster.calls, cluster.namespace, uid)
            return {("Normal", "Accepted"), ("Normal", "ChildrenRendered")} <= told

        await eventually(is_told)


async def test_an_edited_or_deleted_child_is_put_right(cluster: Cluster) -> None:
    async with cluster.watcher():
        await play(cluster.calls, cluster.namespace)
        server = (await children(cluster.calls, cluster.namespace))[3]
        port = server["spec"]["workloadPort"]["port"]
        path = place("ModelServer", cluster.namespace, "play")
        edit = {"spec": {"workloadPort": {"port": port + 1}}}
        assert (await cluster.calls.merge(path, edit, fieldManager="kubectl-edit")).ok
        await eventually(lambda: has_port(cluster.calls, cluster.namespace, port))
        await cluster.calls.delete(path)

        async def is_new() -> bool:
            found = await read(cluster.calls, "ModelServer", cluster.namespace, "play")
            return found is not None and found["metadata"]["uid"] != server["metadata"]["uid"]

        await eventually(is_new)


async def has_port(calls: KubeCalls, namespace: str, port: int) -> bool:
    found = await there(calls, "ModelServer", namespace, "play")
    return bool(found["spec"]["workloadPort"]["port"] == port)


async def test_a_booster_becomes_its_children(cluster: Cluster) -> None:
    async with cluster.watcher():
        await create(cluster.calls, booster("chat"), cluster.namespace)
        said = await saying(
            cluster.calls, "ModelBooster", cluster.namespace, "chat", Expanded=EXPANDED
        )
        for kind, name in (
            ("ModelServing", "chat-main"),
            ("ModelServer", "chat-main"),
            ("ModelRoute", "chat"),
        ):
            child = await there(cluster.calls, kind, cluster.namespace, name)
            owner = child["metadata"]["ownerReferences"][0]
            assert owner["uid"] == said["metadata"]["uid"]


async def test_the_shipped_examples_are_accepted_as_they_are(cluster: Cluster) -> None:
    async with cluster.watcher():
        for document in examples():
            await create(cluster.calls, document, cluster.namespace)
        for document in examples():
            kind, name = document["kind"], document["metadata"]["name"]
            if kind not in ("ModelRoute", "ModelServer"):
                await saying(
                    cluster.calls, kind, cluster.namespace, name, Accepted=("True", "Accepted")
                )
        await there(cluster.calls, "LeaderWorkerSet", cluster.namespace, "qwen-3b")


async def test_a_child_that_is_rendered_no_longer_goes(cluster: Cluster) -> None:
    """The reference leaves the autoscaler behind (llmaz spec 4.4)."""
    metric = {
        "type": "Resource",
        "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}},
    }
    elastic = {
        "minReplicas": 1,
        "maxReplicas": 3,
        "scaleTrigger": {"hpa": {"metrics": [metric]}},
    }
    async with cluster.watcher():
        model = f"m-{uuid.uuid4().hex[:8]}"
        await create(cluster.calls, open_model(model), cluster.namespace)
        await create(
            cluster.calls, playground("play", model, elasticConfig=elastic), cluster.namespace
        )
        await there(cluster.calls, "HorizontalPodAutoscaler", cluster.namespace, "play")
        kept = (await children(cluster.calls, cluster.namespace))[0]["metadata"]["uid"]
        path = place("Playground", cluster.namespace, "play")
        assert (await cluster.calls.merge(path, {"spec": {"elasticConfig": None}})).ok

        async def is_gone() -> bool:
            found = await read(cluster.calls, "HorizontalPodAutoscaler", cluster.namespace, "play")
            return found is None

        await eventually(is_gone)
        assert (await children(cluster.calls, cluster.namespace))[0]["metadata"]["uid"] == kept


async def test_a_restart_at_rest_tells_nothing_and_writes_nothing(
    nats_server: NatsServer, fake_kube_server: KubeServer
) -> None:
    fake = fake_kube_server.fake
    assert fake is not None
    async with fake_kube_server.calls() as calls:
        await install(calls, *definitions(), LEADER_WORKER_SETS)
        async with cluster_watcher(nats_server, fake_kube_server):
            model = await play(calls, "default")
            await children(calls, "default")
            await saying(calls, "Service", "default", "play", Expanded=EXPANDED)
            await saying(calls, "OpenModel", "", model, Accepted=("True", "Accepted"))
        async with cluster_watcher(nats_server, fake_kube_server):
            await passed(calls, "first")
        told = await facts_in(nats_server)
        for name in NEW[1:]:
            fake.record.clear()
            async with cluster_watcher(nats_server, fake_kube_server):
                await passed(calls, name)
            own = [one for one in fake.record.writes() if "inferbus-" in str(one.query)]
            assert own, "what is new is written"
            old = [one for one in own if not any(f"-{new}" in one.path for new in NEW)]
            assert [(one.path, one.query, one.raw) for one in old] == []
        after = await facts_in(nats_server)
        old = {subject for subject in told if not any(f"-{new}" in subject for new in NEW)}
        assert {subject: after[subject] for subject in old} == {one: told[one] for one in old}


async def passed(calls: KubeCalls, name: str) -> None:
    """Everything older was looked at once this is: each kind of work takes its turn in order."""
    await create(calls, open_model(f"m-{name}"), "default")
    await create(calls, playground(f"p-{name}", f"m-{name}"), "default")
    await there(calls, "LeaderWorkerSet", "default", f"p-{name}")
    await saying(calls, "Service", "default", f"p-{name}", Expanded=EXPANDED)
    await saying(calls, "Playground", "default", f"p-{name}", Expanded=EXPANDED)
