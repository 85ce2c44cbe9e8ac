"""The client's calls, the same on the fake API server and on a real one."""

import asyncio
from typing import Any

import pytest

from inferbus_contracts.errors import ErrorCode
from inferbus_shared.kube.client import KubeClient
from inferbus_shared.kube.discovery import Served
from inferbus_shared.kube.problems import KubeError
from inferbus_shared.kube.resources import CONFIG_MAP, EVENT, NAMESPACE, POD, ApiResource
from inferbus_shared.kube.settings import KubeSettings
from inferbus_shared.kube.transport import JSON_PATCH, MERGE_PATCH
from shared.tests.kube.documents import config_map, pod
from tests.support.eventually import eventually
from tests.support.kube import KubeServer


async def refusal(call: Any) -> KubeError:
    with pytest.raises(KubeError) as raised:
        await call
    return raised.value


async def test_what_was_created_can_be_read(kube: KubeClient, namespace: str) -> None:
    assert await kube.get(POD, namespace, "a") is None
    created = await kube.create(POD, pod(namespace, "a"))
    assert created["metadata"]["uid"]
    assert await kube.get(POD, namespace, "a") == created


async def test_an_object_of_the_cluster_has_no_namespace(kube: KubeClient, namespace: str) -> None:
    found = await kube.get(NAMESPACE, "", namespace)
    assert found is not None
    assert NAMESPACE.key_of(found) == NAMESPACE.key("", namespace)


async def test_a_name_is_taken_once(kube: KubeClient, namespace: str) -> None:
    await kube.create(POD, pod(namespace, "a"))
    error = await refusal(kube.create(POD, pod(namespace, "a")))
    assert (error.code, error.status) == (ErrorCode.ALREADY_EXISTS, 409)
    assert error.problems[0].object is None or namespace in error.problems[0].object


async def test_an_invalid_object_is_told_by_field(kube: KubeClient, namespace: str) -> None:
    error = await refusal(kube.create(CONFIG_MAP, config_map(namespace, "Not_A_Name")))
    assert error.code is ErrorCode.KUBE_INVALID
    assert "metadata.name" in str(error)


async def test_a_list_comes_in_pages_and_by_label(kube: KubeClient, namespace: str) -> None:
    for number in range(5):
        await kube.create(POD, pod(namespace, f"p{number}", odd=str(number % 2)))
    everything = await kube.list(POD, namespace, limit=2)
    odd = await kube.list(POD, namespace, "odd=1", limit=1)
    assert [one["metadata"]["name"] for one in everything.items] == [f"p{n}" for n in range(5)]
    assert [one["metadata"]["name"] for one in odd.items] == ["p1", "p3"]
    newest = max(int(one["metadata"]["resourceVersion"]) for one in everything.items)
    assert int(everything.revision) >= newest


async def test_what_is_gone_is_deleted_without_a_word(kube: KubeClient, namespace: str) -> None:
    assert await kube.delete(POD, namespace, "a") is None
    await kube.create(CONFIG_MAP, config_map(namespace, "a"))
    assert await kube.delete(CONFIG_MAP, namespace, "a") is not None
    assert await kube.get(CONFIG_MAP, namespace, "a") is None


async def test_only_the_object_that_is_meant_is_deleted(kube: KubeClient, namespace: str) -> None:
    first = await kube.create(CONFIG_MAP, config_map(namespace, "a"))
    await kube.delete(CONFIG_MAP, namespace, "a", uid=first["metadata"]["uid"])
    second = await kube.create(CONFIG_MAP, config_map(namespace, "a"))
    assert await kube.delete(CONFIG_MAP, namespace, "a", uid=first["metadata"]["uid"]) is None
    assert await kube.get(CONFIG_MAP, namespace, "a") == second


async def test_apply_creates_returns_the_object_and_owns_its_fields(
    kube: KubeClient, namespace: str
) -> None:
    created = await kube.apply(CONFIG_MAP, config_map(namespace, "a", x="1", y="1"), manager="one")
    assert created["metadata"]["uid"]
    changed = await kube.apply(CONFIG_MAP, config_map(namespace, "a", x="2"), manager="one")
    assert changed["data"] == {"x": "2"}
    again = await kube.apply(CONFIG_MAP, config_map(namespace, "a", x="2"), manager="one")
    assert again["metadata"]["resourceVersion"] == changed["metadata"]["resourceVersion"]


async def test_a_field_of_another_manager_is_told_with_its_name(
    kube: KubeClient, namespace: str
) -> None:
    await kube.apply(CONFIG_MAP, config_map(namespace, "a", x="1", y="1"), manager="their-tool")
    mine = config_map(namespace, "a", x="2", y="2")
    error = await refusal(kube.apply(CONFIG_MAP, mine, manager="mine"))
    assert {problem.code for problem in error.problems} == {ErrorCode.FIELD_OWNED_BY_OTHER}
    assert sorted(str(problem.field) for problem in error.problems) == ["data.x", "data.y"]
    assert all("their-tool" in problem.message for problem in error.problems)
    assert error.problems[0].object == f"ConfigMap/{namespace}/a"
    forced = await kube.apply(CONFIG_MAP, mine, manager="mine", force=True)
    assert forced["data"] == {"x": "2", "y": "2"}


async def test_a_dry_run_leaves_nothing_behind(kube: KubeClient, namespace: str) -> None:
    shown = await kube.apply(CONFIG_MAP, config_map(namespace, "a"), manager="m", dry_run=True)
    assert shown["metadata"]["name"] == "a"
    assert await kube.get(CONFIG_MAP, namespace, "a") is None


async def test_a_passed_resource_version_is_a_conflict(kube: KubeClient, namespace: str) -> None:
    created = await kube.create(CONFIG_MAP, config_map(namespace, "a"))
    version = {"metadata": {"resourceVersion": created["metadata"]["resourceVersion"]}}
    patch = {**version, "data": {"x": "1"}}
    await kube.patch(CONFIG_MAP, namespace, "a", patch, content_type=MERGE_PATCH)
    again = {**version, "data": {"x": "2"}}
    error = await refusal(kube.patch(CONFIG_MAP, namespace, "a", again, content_type=MERGE_PATCH))
    assert (error.code, error.status) == (ErrorCode.CONFLICT, 409)


async def test_a_json_patch_whose_test_fails_changes_nothing(
    kube: KubeClient, namespace: str
) -> None:
    await kube.create(CONFIG_MAP, config_map(namespace, "a", x="1"))

    def patch(before: str) -> list[dict[str, str]]:
        return [
            {"op": "test", "path": "/data/x", "value": before},
            {"op": "replace", "path": "/data/x", "value": "2"},
        ]

    error = await refusal(
        kube.patch(CONFIG_MAP, namespace, "a", patch("0"), content_type=JSON_PATCH)
    )
    assert error.code is ErrorCode.KUBE_INVALID
    changed = await kube.patch(CONFIG_MAP, namespace, "a", patch("1"), content_type=JSON_PATCH)
    assert changed["data"] == {"x": "2"}


async def test_status_and_scale_are_apart_from_the_rest(
    kube: KubeClient, namespace: str, widgets: ApiResource
) -> None:
    widget = {
        "apiVersion": widgets.api_version,
        "kind": "Widget",
        "metadata": {"name": "w", "namespace": namespace},
        "spec": {"replicas": 1},
    }
    created = await kube.create(widgets, widget)
    shown = await kube.apply(
        widgets,
        {
            **{name: widget[name] for name in ("apiVersion", "kind", "metadata")},
            "status": {"replicas": 1},
        },
        manager="m",
        subresource="status",
    )
    assert shown["status"] == {"replicas": 1}
    assert shown["metadata"]["generation"] == created["metadata"]["generation"]

    scale = await kube.scale(widgets, namespace, "w")
    assert scale["spec"]["replicas"] == 1
    version = scale["metadata"]["resourceVersion"]
    await kube.set_scale(widgets, namespace, "w", 3, resource_version=version, manager="m")
    error = await refusal(kube.set_scale(widgets, namespace, "w", 9, resource_version=version))
    assert error.code is ErrorCode.CONFLICT
    after = await kube.get(widgets, namespace, "w")
    assert after is not None
    assert after["spec"]["replicas"] == 3


async def test_the_same_event_is_counted_up(
    kube: KubeClient, kube_server: KubeServer, namespace: str
) -> None:
    about = await kube.create(POD, pod(namespace, "a"))
    await kube.record_event(about, "Created", "made one pod", component="inferbus-test")
    async with KubeClient(kube.settings) as restarted:
        told = {"component": "inferbus-test", "warning": False}
        await restarted.record_event(about, "Created", "made one pod", **told)
    await kube.record_event(about, "Failed", "no room", component="inferbus-test", warning=True)
    events = (await kube.list(EVENT, namespace)).items
    found = sorted((one["reason"], one["type"], one["count"], one["message"]) for one in events)
    assert found == [
        ("Created", "Normal", 2, "made one pod"),
        ("Failed", "Warning", 1, "no room"),
    ]
    assert {one["involvedObject"]["uid"] for one in events} == {about["metadata"]["uid"]}


async def test_discovery_says_what_is_served(kube: KubeClient, widgets: ApiResource) -> None:
    async def found() -> frozenset[Served]:
        served = await kube.served()
        assert {("", "v1", "pods"), (widgets.group, "v1", "widgets")} <= served
        return served

    served = await eventually(found, what="discovery follows what is served")
    assert not any("/" in plural for _, _, plural in served)
    assert await kube.serves(POD)
    assert await kube.serves(widgets)
    assert not await kube.serves(ApiResource("none.example.com", "v1", "gadgets", "Gadget"))
    assert not await kube.serves(ApiResource("", "v1", "gadgets", "Gadget"))
    assert not await kube.serves(ApiResource(widgets.group, "v2", "widgets", "Widget"))
    assert not await kube.serves(ApiResource(widgets.group, "v1", "gadgets", "Gadget"))


async def test_an_unknown_token_is_refused(kube_server: KubeServer) -> None:
    wrong = kube_server.folder / "wrong.token"
    wrong.write_text("nobody")
    settings = KubeSettings.model_validate({**kube_server.settings(), "token_file": wrong})
    async with KubeClient(settings) as client:
        error = await refusal(client.get(POD, "default", "a"))
    assert (error.code, error.status) == (ErrorCode.KUBE_REFUSED, 401)


async def test_a_kubeconfig_leads_to_the_same_server(
    kube_server: KubeServer, namespace: str
) -> None:
    async with KubeClient(KubeSettings(kubeconfig=kube_server.kubeconfig())) as client:
        created = await client.create(POD, pod(namespace, "a"))
        assert created["metadata"]["name"] == "a"


async def test_many_at_once_all_arrive(kube: KubeClient, namespace: str) -> None:
    await asyncio.gather(
        *(kube.create(CONFIG_MAP, config_map(namespace, f"c{n}")) for n in range(100))
    )
    assert len((await kube.list(CONFIG_MAP, namespace, limit=30)).items) >= 100
