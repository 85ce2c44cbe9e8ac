"""The scheduler, kubelet and garbage collector that tests play, on both servers."""

from typing import Any

import pytest

from tests.support.eventually import eventually
from tests.support.kube_calls import KubeCalls, path_of
from tests.support.kube_cluster import KubeCluster

Document = dict[str, Any]


@pytest.fixture
def cluster(kube_calls: KubeCalls, namespace: str) -> KubeCluster:
    return KubeCluster(kube_calls, namespace)


async def make_pod(cluster: KubeCluster, name: str, owner: Document | None = None) -> None:
    body: Document = {
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "c", "image": "i:1"}]},
    }
    if owner is not None:
        body["metadata"]["ownerReferences"] = [reference(owner)]
    answer = await cluster.calls.post(path_of("pods", cluster.namespace), body)
    assert answer.code == 201, answer


def reference(owner: Document) -> Document:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "blockOwnerDeletion": True,
    }


async def make_owner(cluster: KubeCluster, name: str = "owner") -> Document:
    path = path_of("configmaps", cluster.namespace)
    return (await cluster.calls.post(path, {"metadata": {"name": name}})).body


def owner_path(cluster: KubeCluster) -> str:
    return path_of("configmaps", cluster.namespace, "owner")


def states(pods: list[Document]) -> dict[str, tuple[str, bool]]:
    return {pod["metadata"]["name"]: (pod["status"]["phase"], ready(pod)) for pod in pods}


def ready(pod: Document) -> bool:
    conditions = pod["status"].get("conditions", ())
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)


async def test_pods_are_bound_run_and_end(cluster: KubeCluster) -> None:
    for name in ("a", "b"):
        await make_pod(cluster, name)
    await cluster.settle()
    pods = await cluster.pods()
    assert states(pods) == {"a": ("Running", True), "b": ("Running", True)}
    assert {pod["spec"]["nodeName"] for pod in pods} == {"node-0", "node-1"}
    assert len({pod["status"]["podIP"] for pod in pods}) == 2
    await cluster.calls.delete(path_of("pods", cluster.namespace, "a"))
    assert len(await cluster.pods()) == 2
    await cluster.settle()
    assert states(await cluster.pods()) == {"b": ("Running", True)}


async def test_a_test_holds_what_it_likes(cluster: KubeCluster) -> None:
    for name in ("a", "b", "c"):
        await make_pod(cluster, name)
    cluster.binds = lambda pod: pod["metadata"]["name"] != "a"
    cluster.runs = lambda pod: pod["metadata"]["name"] != "b"
    cluster.ends = lambda _: False
    await cluster.settle()
    phases = {name: state[0] for name, state in states(await cluster.pods()).items()}
    assert phases == {"a": "Pending", "b": "Pending", "c": "Running"}
    await cluster.calls.delete(path_of("pods", cluster.namespace, "c"))
    await cluster.settle()
    assert len(await cluster.pods()) == 3


async def test_readiness_waits_for_its_gates(cluster: KubeCluster) -> None:
    body = {
        "metadata": {"name": "a"},
        "spec": {
            "containers": [{"name": "c", "image": "i:1"}],
            "readinessGates": [{"conditionType": "x.io/open"}],
        },
    }
    path = path_of("pods", cluster.namespace)
    await cluster.calls.post(path, body)
    await cluster.settle()
    [pod] = await cluster.pods()
    assert not ready(pod)
    conditions = [*pod["status"]["conditions"], {"type": "x.io/open", "status": "True"}]
    await cluster.calls.merge(f"{path}/a/status", {"status": {"conditions": conditions}})
    await cluster.settle()
    assert ready((await cluster.pods())[0])


async def test_pods_fail_restart_and_lose_their_readiness(cluster: KubeCluster) -> None:
    await make_pod(cluster, "a")
    await cluster.settle()
    [pod] = await cluster.pods()
    assert (await cluster.restart_container(pod)).ok
    [pod] = await cluster.pods()
    assert pod["status"]["containerStatuses"][0]["restartCount"] == 1
    await cluster.set_ready(pod, False)
    assert states(await cluster.pods()) == {"a": ("Running", False)}
    await cluster.fail(pod)
    await cluster.settle()
    assert states(await cluster.pods()) == {"a": ("Failed", False)}


async def test_children_go_with_their_owner(cluster: KubeCluster) -> None:
    owner = await make_owner(cluster)
    await make_pod(cluster, "child", owner)
    await make_pod(cluster, "free")
    await cluster.settle()
    await cluster.calls.delete(owner_path(cluster))
    await cluster.settle()
    assert [pod["metadata"]["name"] for pod in await cluster.pods()] == ["free"]


async def test_an_owner_of_the_same_name_is_another(cluster: KubeCluster) -> None:
    owner = await make_owner(cluster)
    await make_pod(cluster, "child", owner)
    await cluster.calls.delete(owner_path(cluster))
    await make_owner(cluster)
    await cluster.settle()
    assert await cluster.pods() == []


async def test_a_child_with_another_owner_stays(cluster: KubeCluster) -> None:
    owner, other = await make_owner(cluster), await make_owner(cluster, "other")
    await make_pod(cluster, "child", owner)
    path = path_of("pods", cluster.namespace, "child")
    both = {"metadata": {"ownerReferences": [reference(owner), reference(other)]}}
    await cluster.calls.merge(path, both)
    await cluster.calls.delete(owner_path(cluster))
    await cluster.settle()
    assert len(await cluster.pods()) == 1


async def test_an_owner_waits_for_its_children_in_the_foreground(cluster: KubeCluster) -> None:
    owner = await make_owner(cluster)
    await make_pod(cluster, "child", owner)
    await cluster.settle()
    cluster.ends = lambda _: False
    await cluster.calls.delete(owner_path(cluster), {"propagationPolicy": "Foreground"})
    await cluster.settle()
    assert (await cluster.calls.get(owner_path(cluster))).code == 200
    assert (await cluster.pods())[0]["metadata"]["deletionTimestamp"]
    cluster.ends = lambda _: True
    await cluster.settle()
    assert await cluster.pods() == []
    assert (await cluster.calls.get(owner_path(cluster))).code == 404


async def test_orphans_stay(cluster: KubeCluster) -> None:
    owner = await make_owner(cluster)
    await make_pod(cluster, "child", owner)
    await cluster.calls.delete(owner_path(cluster), {"propagationPolicy": "Orphan"})
    await cluster.settle()
    assert (await cluster.calls.get(owner_path(cluster))).code == 404
    [pod] = await cluster.pods()
    assert "ownerReferences" not in pod["metadata"]


async def test_it_plays_in_the_background(cluster: KubeCluster) -> None:
    async with cluster.playing():
        await make_pod(cluster, "a")

        async def runs() -> bool:
            return states(await cluster.pods()) == {"a": ("Running", True)}

        await eventually(runs)
