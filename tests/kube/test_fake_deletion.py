"""Deleting on both servers: grace, preconditions, finalizers, propagation, namespaces."""

from typing import Any

import pytest

from tests.kube.definitions import Widgets
from tests.support.eventually import eventually
from tests.support.kube import KubeServer
from tests.support.kube_calls import Answer, KubeCalls, path_of

Document = dict[str, Any]
NO_UID = "00000000-0000-0000-0000-000000000000"


def config_map(name: str, *finalizers: str, **labels: str) -> Document:
    return {"metadata": {"name": name, "labels": labels, "finalizers": list(finalizers)}}


class Pods:
    """Pods of one namespace."""

    def __init__(self, calls: KubeCalls, namespace: str) -> None:
        self.calls = calls
        self.path = path_of("pods", namespace)

    async def make(self, name: str, *, node: str = "", **meta: Any) -> Answer:
        spec = {"containers": [{"name": "c", "image": "i:1"}], "terminationGracePeriodSeconds": 20}
        body = {"metadata": {"name": name, **meta}, "spec": spec}
        created = await self.calls.post(self.path, body)
        if node:
            binding = {"metadata": {"name": name}, "target": {"kind": "Node", "name": node}}
            assert (await self.calls.post(f"{self.path}/{name}/binding", binding)).code == 201
        return created

    async def delete(self, name: str, **options: Any) -> Answer:
        return await self.calls.delete(f"{self.path}/{name}", options)

    async def there(self, name: str) -> bool:
        return (await self.calls.get(f"{self.path}/{name}")).code == 200


@pytest.fixture
def pods(kube_calls: KubeCalls, namespace: str) -> Pods:
    return Pods(kube_calls, namespace)


async def test_a_pod_on_no_node_goes_at_once(pods: Pods) -> None:
    await pods.make("p")
    answer = await pods.delete("p")
    assert (answer.code, answer.body["kind"]) == (200, "Pod")
    assert not await pods.there("p")


async def test_a_pod_on_a_node_is_marked_until_its_node_confirms(pods: Pods) -> None:
    await pods.make("p", node="n")
    marked = await pods.delete("p")
    meta = marked.body["metadata"]
    assert (marked.code, meta["deletionGracePeriodSeconds"]) == (200, 20)
    assert meta["deletionTimestamp"] > meta["creationTimestamp"]
    again = await pods.delete("p")
    assert again.revision == marked.revision
    shorter = await pods.delete("p", gracePeriodSeconds=5)
    assert shorter.body["metadata"]["deletionGracePeriodSeconds"] == 5
    longer = await pods.delete("p", gracePeriodSeconds=50)
    assert longer.body["metadata"]["deletionGracePeriodSeconds"] == 5
    await pods.delete("p", gracePeriodSeconds=0)
    assert not await pods.there("p")


async def test_a_pod_that_has_ended_has_no_grace(pods: Pods, kube_calls: KubeCalls) -> None:
    await pods.make("p", node="n")
    await kube_calls.merge(f"{pods.path}/p/status", {"status": {"phase": "Failed"}})
    await pods.delete("p")
    assert not await pods.there("p")


async def test_a_pod_is_bound_once(pods: Pods, kube_calls: KubeCalls) -> None:
    await pods.make("p", node="n")
    bound = (await kube_calls.get(f"{pods.path}/p")).body
    assert bound["spec"]["nodeName"] == "n"
    assert [(c["type"], c["status"]) for c in bound["status"]["conditions"]] == [
        ("PodScheduled", "True")
    ]
    binding = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "m"}}
    twice = await kube_calls.post(f"{pods.path}/p/binding", binding)
    assert (twice.code, twice.body["reason"]) == (409, "Conflict")
    assert 'already assigned to node "n"' in twice.body["message"]


async def test_preconditions(pods: Pods) -> None:
    meta = (await pods.make("p")).body["metadata"]
    for wrong in ({"uid": NO_UID}, {"resourceVersion": "1"}):
        refused = await pods.delete("p", preconditions=wrong)
        assert (refused.code, refused.body["reason"]) == (409, "Conflict")
        assert "in the precondition" in refused.body["message"]
    right = {"uid": meta["uid"], "resourceVersion": meta["resourceVersion"]}
    assert (await pods.delete("p", preconditions=right)).code == 200


async def test_what_is_gone_is_not_found(pods: Pods) -> None:
    answer = await pods.delete("p")
    assert (answer.code, answer.body["reason"]) == (404, "NotFound")


async def test_other_kinds_answer_with_a_status(kube_calls: KubeCalls, namespace: str) -> None:
    path = path_of("configmaps", namespace)
    created = await kube_calls.post(path, config_map("a"))
    answer = await kube_calls.delete(f"{path}/a")
    assert answer.body == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": {"name": "a", "kind": "configmaps", "uid": created.body["metadata"]["uid"]},
    }


async def test_finalizers_hold_an_object(kube_calls: KubeCalls, namespace: str) -> None:
    path = path_of("configmaps", namespace)
    await kube_calls.post(path, config_map("a", "x.io/a", "x.io/b"))
    held = await kube_calls.delete(f"{path}/a")
    assert (held.code, held.body["kind"]) == (200, "ConfigMap")
    assert held.body["metadata"]["deletionTimestamp"]
    more = {"metadata": {"finalizers": ["x.io/a", "x.io/b", "x.io/c"]}}
    refused = await kube_calls.merge(f"{path}/a", more)
    assert (refused.code, refused.body["reason"]) == (422, "Invalid")
    less = await kube_calls.merge(f"{path}/a", {"metadata": {"finalizers": ["x.io/b"]}})
    assert less.code == 200
    async with kube_calls.watch(path, resourceVersion=less.revision) as watch:
        last = await kube_calls.merge(f"{path}/a", {"metadata": {"finalizers": None}})
        assert last.code == 200
        [event] = await watch.events(1)
    assert event["type"] == "DELETED"
    assert (await kube_calls.get(f"{path}/a")).code == 404


@pytest.mark.parametrize(
    ("policy", "finalizers"),
    [("Foreground", ["foregroundDeletion"]), ("Orphan", ["orphan"]), ("Background", None)],
)
async def test_propagation(
    kube_calls: KubeCalls, namespace: str, policy: str, finalizers: list[str] | None
) -> None:
    path = path_of("configmaps", namespace)
    await kube_calls.post(path, config_map("a"))
    await kube_calls.delete(f"{path}/a", {"propagationPolicy": policy})
    found = await kube_calls.get(f"{path}/a")
    left = found.body["metadata"]["finalizers"] if found.code == 200 else None
    assert left == finalizers


async def test_a_collection_is_deleted_by_its_labels(kube_calls: KubeCalls, namespace: str) -> None:
    path = path_of("secrets", namespace)
    for name, label in (("a", "1"), ("b", "2"), ("c", "1")):
        await kube_calls.post(path, config_map(name, x=label))
    answer = await kube_calls.delete(path, labelSelector="x=1")
    assert answer.code == 200
    assert answer.names == ["a", "c"]
    assert (await kube_calls.get(path)).names == ["b"]


async def test_a_marked_custom_object_is_of_another_generation(
    kube_calls: KubeCalls, namespace: str
) -> None:
    widgets = await Widgets(kube_calls, namespace).install()
    body = widgets.widget(spec={})
    body["metadata"]["finalizers"] = ["x.io/a"]
    await kube_calls.post(widgets.path(), body)
    held = await kube_calls.delete(widgets.path("w"))
    assert held.body["metadata"]["generation"] == 2
    await kube_calls.merge(widgets.path("w"), {"metadata": {"finalizers": []}})
    assert (await kube_calls.get(widgets.path("w"))).code == 404


async def test_nothing_new_comes_into_a_namespace_that_goes(
    kube_calls: KubeCalls, namespace: str
) -> None:
    path = path_of("configmaps", namespace)
    await kube_calls.post(path, config_map("a", "x.io/a"))
    deleted = await kube_calls.delete(path_of("namespaces", name=namespace))
    assert deleted.body["status"]["phase"] == "Terminating"

    async def refused() -> bool:
        answer = await kube_calls.post(path, config_map("b"))
        return answer.code == 403 and "is being terminated" in answer.body["message"]

    await eventually(refused, what="the namespace takes nothing new")


async def test_a_namespace_takes_its_content_with_it(fake_kube_server: KubeServer) -> None:
    async with fake_kube_server.calls() as calls:
        await calls.post(path_of("namespaces"), {"metadata": {"name": "n"}})
        pods = Pods(calls, "n")
        await pods.make("p", node="x")
        path = path_of("configmaps", "n")
        await calls.post(path, config_map("held", "x.io/a"))
        await calls.delete(path_of("namespaces", name="n"))
        assert not await pods.there("p")
        assert (await calls.get(path_of("namespaces", name="n"))).code == 200
        await calls.merge(f"{path}/held", {"metadata": {"finalizers": None}})
        assert (await calls.get(path_of("namespaces", name="n"))).code == 404
