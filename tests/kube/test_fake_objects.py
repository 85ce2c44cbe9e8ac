"""Objects on both servers: creating, reading, replacing, patching, and every refusal."""

import asyncio
from typing import Any

import pytest

from tests.kube.definitions import Widgets
from tests.support.kube import KubeServer
from tests.support.kube_calls import KubeCalls, path_of

Document = dict[str, Any]


def config_map(name: str = "a", **data: str) -> Document:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


async def test_a_new_object_has_what_the_server_gives(
    kube_calls: KubeCalls, namespace: str
) -> None:
    answer = await kube_calls.post(path_of("configmaps", namespace), config_map(k="v"))
    assert answer.code == 201
    meta = answer.body["metadata"]
    assert answer.body["data"] == {"k": "v"}
    assert (answer.body["kind"], answer.body["apiVersion"]) == ("ConfigMap", "v1")
    assert meta["namespace"] == namespace
    assert len(meta["uid"]) == 36
    assert int(meta["resourceVersion"]) > 0
    assert meta["creationTimestamp"].endswith("Z")
    assert "generation" not in meta
    again = await kube_calls.get(path_of("configmaps", namespace, "a"))
    assert again.body == answer.body


async def test_what_is_not_there_and_what_is_there_already(
    kube_calls: KubeCalls, namespace: str
) -> None:
    missing = await kube_calls.get(path_of("configmaps", namespace, "a"))
    assert missing.code == 404
    assert missing.body == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": 'configmaps "a" not found',
        "reason": "NotFound",
        "details": {"name": "a", "kind": "configmaps"},
        "code": 404,
    }
    deployment = path_of("deployments", namespace, "d", group="apps")
    missing = await kube_calls.get(deployment)
    assert missing.body["details"] == {"name": "d", "group": "apps", "kind": "deployments"}
    assert missing.body["message"] == 'deployments.apps "d" not found'
    await kube_calls.post(path_of("configmaps", namespace), config_map())
    twice = await kube_calls.post(path_of("configmaps", namespace), config_map())
    assert (twice.code, twice.body["reason"]) == (409, "AlreadyExists")
    assert twice.body["message"] == 'configmaps "a" already exists'
    assert twice.body["details"] == {"name": "a", "kind": "configmaps"}


async def test_what_no_server_serves_is_a_page_that_is_no_json(kube_calls: KubeCalls) -> None:
    answer = await kube_calls.get("/apis/none.example.com/v1/things")
    assert (answer.code, answer.text.strip()) == (404, "404 page not found")


async def test_who_is_unknown_is_refused(kube_server: KubeServer) -> None:
    async with KubeCalls(kube_server.url, "wrong", kube_server.ca_file) as calls:
        answer = await calls.get("/api/v1/namespaces")
    assert (answer.code, answer.body["reason"]) == (401, "Unauthorized")


async def test_a_namespace_that_is_not_there(kube_calls: KubeCalls) -> None:
    answer = await kube_calls.post(path_of("configmaps", "nowhere"), config_map())
    assert (answer.code, answer.body["message"]) == (404, 'namespaces "nowhere" not found')
    listed = await kube_calls.get(path_of("configmaps", "nowhere"))
    assert (listed.code, listed.items) == (200, [])


async def test_names_are_generated(kube_calls: KubeCalls, namespace: str) -> None:
    body = {"metadata": {"generateName": "a-"}}
    names = set()
    for _ in range(3):
        answer = await kube_calls.post(path_of("configmaps", namespace), body)
        names.add(answer.body["metadata"]["name"])
    assert len(names) == 3
    assert all(name.startswith("a-") and len(name) == 7 for name in names)


@pytest.mark.parametrize("name", ["", "Upper", "a_b", "-a"])
async def test_a_name_that_cannot_be(kube_calls: KubeCalls, namespace: str, name: str) -> None:
    answer = await kube_calls.post(path_of("configmaps", namespace), config_map(name))
    assert (answer.code, answer.body["reason"]) == (422, "Invalid")
    assert answer.body["details"]["kind"] == "ConfigMap"
    [cause] = answer.body["details"]["causes"]
    assert cause["field"] in ("metadata.name", "name")


async def test_a_stale_put_is_a_conflict(kube_calls: KubeCalls, namespace: str) -> None:
    path = path_of("configmaps", namespace, "a")
    first = (await kube_calls.post(path_of("configmaps", namespace), config_map(k="1"))).body
    second = await kube_calls.put(path, {**first, "data": {"k": "2"}})
    assert second.code == 200
    assert int(second.revision) > int(first["metadata"]["resourceVersion"])
    stale = await kube_calls.put(path, {**first, "data": {"k": "3"}})
    assert (stale.code, stale.body["reason"]) == (409, "Conflict")
    assert stale.body["message"].startswith(
        'Operation cannot be fulfilled on configmaps "a": the object has been modified'
    )
    assert stale.body["details"] == {"name": "a", "kind": "configmaps"}


async def test_a_put_without_a_revision_is_unconditional(
    kube_calls: KubeCalls, namespace: str
) -> None:
    path = path_of("configmaps", namespace, "a")
    await kube_calls.post(path_of("configmaps", namespace), config_map(k="1"))
    answer = await kube_calls.put(path, config_map(k="2"))
    assert (answer.code, answer.body["data"]) == (200, {"k": "2"})


async def test_a_put_of_a_custom_object_needs_its_revision(
    kube_calls: KubeCalls, namespace: str
) -> None:
    widgets = await Widgets(kube_calls, namespace).install()
    await kube_calls.post(widgets.path(), widgets.widget())
    answer = await kube_calls.put(widgets.path("w"), widgets.widget())
    assert answer.code == 422
    assert "metadata.resourceVersion: Invalid value" in answer.body["message"]


async def test_a_put_of_another_object_of_the_name(kube_calls: KubeCalls, namespace: str) -> None:
    path = path_of("configmaps", namespace, "a")
    await kube_calls.post(path_of("configmaps", namespace), config_map())
    other = config_map()
    other["metadata"]["uid"] = "00000000-0000-0000-0000-000000000000"
    answer = await kube_calls.put(path, other)
    assert (answer.code, answer.body["reason"]) == (409, "Conflict")
    assert "Precondition failed: UID in precondition" in answer.body["message"]


async def test_patches_with_preconditions(kube_calls: KubeCalls, namespace: str) -> None:
    path = path_of("configmaps", namespace, "a")
    created = (await kube_calls.post(path_of("configmaps", namespace), config_map(k="1"))).body
    revision = created["metadata"]["resourceVersion"]
    current = {"metadata": {"resourceVersion": revision}, "data": {"k": "2"}}
    assert (await kube_calls.merge(path, current)).code == 200
    stale = await kube_calls.merge(path, current | {"data": {"k": "3"}})
    assert (stale.code, stale.body["reason"]) == (409, "Conflict")
    uid = "00000000-0000-0000-0000-000000000000"
    other = await kube_calls.merge(path, {"metadata": {"uid": uid}, "data": {"k": "4"}})
    assert (other.code, other.body["reason"]) == (422, "Invalid")
    causes = other.body["details"]["causes"]
    assert {cause["field"] for cause in causes} == {"metadata.uid"}


async def test_merge_json_and_strategic_patches(kube_calls: KubeCalls, namespace: str) -> None:
    path = path_of("configmaps", namespace, "a")
    await kube_calls.post(path_of("configmaps", namespace), config_map(k="1", old="x"))
    merged = await kube_calls.merge(path, {"data": {"old": None, "new": "y"}})
    assert merged.body["data"] == {"k": "1", "new": "y"}
    patched = await kube_calls.json_patch(
        path,
        [
            {"op": "test", "path": "/data/k", "value": "1"},
            {"op": "replace", "path": "/data/k", "value": "2"},
        ],
    )
    assert patched.body["data"] == {"k": "2", "new": "y"}
    failed = await kube_calls.json_patch(
        path,
        [
            {"op": "test", "path": "/data/k", "value": "1"},
            {"op": "replace", "path": "/data/k", "value": "3"},
        ],
    )
    assert (failed.code, failed.body["reason"]) == (422, "Invalid")
    missing = await kube_calls.json_patch(path, [{"op": "remove", "path": "/data/none"}])
    assert missing.code == 422
    strategic = await kube_calls.strategic(path, {"data": {"new": None}})
    assert strategic.body["data"] == {"k": "2"}


async def test_a_json_patch_of_an_object_is_refused(kube_calls: KubeCalls, namespace: str) -> None:
    path = path_of("configmaps", namespace, "a")
    await kube_calls.post(path_of("configmaps", namespace), config_map())
    answer = await kube_calls.call(
        "PATCH", path, {"data": {}}, content_type="application/json-patch+json"
    )
    assert answer.code == 400
    plain = await kube_calls.call("PATCH", path, {"data": {}})
    assert (plain.code, plain.body["reason"]) == (415, "UnsupportedMediaType")


async def test_custom_objects_know_no_strategic_patch(
    kube_calls: KubeCalls, namespace: str
) -> None:
    widgets = await Widgets(kube_calls, namespace).install()
    await kube_calls.post(widgets.path(), widgets.widget())
    answer = await kube_calls.strategic(widgets.path("w"), {"spec": {"replicas": 3}})
    assert (answer.code, answer.body["reason"]) == (415, "UnsupportedMediaType")


async def test_what_changes_nothing_is_not_written(kube_calls: KubeCalls, namespace: str) -> None:
    path = path_of("configmaps", namespace, "a")
    first = await kube_calls.post(path_of("configmaps", namespace), config_map(k="1"))
    again = await kube_calls.merge(path, {"data": {"k": "1"}})
    assert again.revision == first.revision
    put = await kube_calls.put(path, again.body)
    assert put.revision == first.revision


async def test_a_dry_run_changes_nothing(kube_calls: KubeCalls, namespace: str) -> None:
    path = path_of("configmaps", namespace, "a")
    created = await kube_calls.post(
        path_of("configmaps", namespace), config_map(k="1"), dryRun="All"
    )
    assert created.code == 201
    assert (await kube_calls.get(path)).code == 404
    await kube_calls.post(path_of("configmaps", namespace), config_map(k="1"))
    patched = await kube_calls.merge(path, {"data": {"k": "2"}}, dryRun="All")
    assert patched.body["data"] == {"k": "2"}
    await kube_calls.delete(path, dryRun="All")
    assert (await kube_calls.get(path)).body["data"] == {"k": "1"}


async def test_a_body_of_another_kind_or_place(kube_calls: KubeCalls, namespace: str) -> None:
    path = path_of("configmaps", namespace)
    other_kind = await kube_calls.post(path, config_map() | {"kind": "Secret"})
    assert (other_kind.code, other_kind.body["reason"]) == (400, "BadRequest")
    elsewhere = config_map()
    elsewhere["metadata"]["namespace"] = "default"
    answer = await kube_calls.post(path, elsewhere)
    assert (answer.code, answer.body["reason"]) == (400, "BadRequest")


async def test_writers_at_the_same_time_lose_nothing(kube_calls: KubeCalls, namespace: str) -> None:
    path = path_of("configmaps", namespace, "a")
    await kube_calls.post(path_of("configmaps", namespace), config_map())
    patches = [kube_calls.merge(path, {"data": {f"k{n}": "v"}}) for n in range(8)]
    answers = await asyncio.gather(*patches)
    assert {answer.code for answer in answers} == {200}
    assert len({answer.revision for answer in answers}) == 8
    assert len((await kube_calls.get(path)).body["data"]) == 8


async def test_controller_revisions_are_immutable(kube_calls: KubeCalls, namespace: str) -> None:
    path = path_of("controllerrevisions", namespace, group="apps")
    body = {"metadata": {"name": "r"}, "data": {"a": 1}, "revision": 1}
    assert (await kube_calls.post(path, body)).code == 201
    changed = await kube_calls.merge(f"{path}/r", {"data": {"a": 2}})
    assert (changed.code, changed.body["reason"]) == (422, "Invalid")
    assert (await kube_calls.merge(f"{path}/r", {"revision": 2})).body["revision"] == 2


async def test_built_in_types_have_their_defaults(kube_calls: KubeCalls, namespace: str) -> None:
    container = {
        "name": "c",
        "image": "i:1",
        "ports": [{"containerPort": 80}],
        "env": [{"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}],
        "readinessProbe": {"httpGet": {"path": "/", "port": 80}},
    }
    pod = await kube_calls.post(
        path_of("pods", namespace),
        {"metadata": {"name": "p"}, "spec": {"containers": [container]}},
    )
    spec, made = pod.body["spec"], pod.body["spec"]["containers"][0]
    assert spec["restartPolicy"] == "Always"
    assert spec["terminationGracePeriodSeconds"] == 30
    assert (spec["schedulerName"], spec["dnsPolicy"]) == ("default-scheduler", "ClusterFirst")
    assert spec["securityContext"] == {}
    assert made["imagePullPolicy"] == "IfNotPresent"
    assert made["ports"] == [{"containerPort": 80, "protocol": "TCP"}]
    assert made["resources"] == {}
    assert made["env"][0]["valueFrom"]["fieldRef"]["apiVersion"] == "v1"
    assert made["readinessProbe"] == {
        "httpGet": {"path": "/", "port": 80, "scheme": "HTTP"},
        "timeoutSeconds": 1,
        "periodSeconds": 10,
        "successThreshold": 1,
        "failureThreshold": 3,
    }
    assert pod.body["status"]["phase"] == "Pending"
    service = await kube_calls.post(
        path_of("services", namespace),
        {
            "metadata": {"name": "s"},
            "spec": {"clusterIP": "None", "selector": {"a": "b"}, "ports": [{"port": 80}]},
        },
    )
    assert service.body["spec"] == {
        "clusterIP": "None",
        "clusterIPs": ["None"],
        "selector": {"a": "b"},
        "ports": [{"port": 80, "protocol": "TCP", "targetPort": 80}],
        "type": "ClusterIP",
        "sessionAffinity": "None",
        "internalTrafficPolicy": "Cluster",
        "ipFamilies": ["IPv4"],
        "ipFamilyPolicy": "SingleStack",
    }
