"""Custom kinds on both servers: definitions, defaults, pruning, status, generation, scale."""

from typing import Any

import pytest

from tests.fakes.kubernetes.crds import leader_worker_set_definition, pod_group_definition
from tests.kube.definitions import CRDS, Widgets
from tests.support.eventually import eventually
from tests.support.kube import KubeServer
from tests.support.kube_calls import KubeCalls, path_of

Document = dict[str, Any]


async def test_a_definition_makes_a_kind_served_and_takes_it_away(
    kube_calls: KubeCalls, namespace: str
) -> None:
    widgets = Widgets(kube_calls, namespace)
    assert not await widgets.served()
    await widgets.install()

    async def listed() -> dict[str, Document]:
        answer = await kube_calls.get(f"/apis/{widgets.group}/v1")
        return {each["name"]: each for each in answer.body.get("resources", [])}

    resources = await eventually(listed, what="discovery follows what is served")
    assert set(resources) == {"widgets", "widgets/status", "widgets/scale"}
    assert resources["widgets"]["kind"] == "Widget"
    assert resources["widgets"]["shortNames"] == ["wi"]
    assert resources["widgets/scale"]["kind"] == "Scale"

    async def in_the_list_of_groups() -> bool:
        groups = (await kube_calls.get("/apis")).body["groups"]
        return widgets.group in [group["name"] for group in groups]

    await eventually(in_the_list_of_groups)
    definition = (await kube_calls.get(f"{CRDS}/widgets.{widgets.group}")).body
    conditions = {c["type"]: c["status"] for c in definition["status"]["conditions"]}
    assert conditions["Established"] == "True"

    await kube_calls.post(widgets.path(), widgets.widget())
    revision = (await kube_calls.get(widgets.path())).revision
    async with kube_calls.watch(widgets.path(), resourceVersion=revision) as watch:
        await kube_calls.delete(f"{CRDS}/widgets.{widgets.group}")
        events = await watch.rest()
    assert [event["type"] for event in events][-1:] == ["DELETED"]

    async def gone() -> bool:
        answer = await kube_calls.get(widgets.path())
        return answer.code == 404

    await eventually(gone, what="the kind is no longer served")

    async def forgotten() -> bool:
        return (await kube_calls.get(f"/apis/{widgets.group}/v1")).code == 404

    await eventually(forgotten, what="the group is no longer discovered")


async def test_defaults_and_unknown_fields(kube_calls: KubeCalls, namespace: str) -> None:
    widgets = await Widgets(kube_calls, namespace).install()
    spec = {"unknown": 1, "roles": [{"name": "a", "more": 1}], "free": {"any": {"thing": 1}}}
    created = await kube_calls.post(widgets.path(), widgets.widget(spec=spec))
    assert created.body["spec"] == {
        "replicas": 1,
        "roles": [{"name": "a", "replicas": 1}],
        "free": {"any": {"thing": 1}},
    }
    bare = await kube_calls.post(widgets.path(), widgets.widget("bare"))
    assert "spec" not in bare.body


async def test_status_is_written_through_its_subresource_alone(
    kube_calls: KubeCalls, namespace: str
) -> None:
    widgets = await Widgets(kube_calls, namespace).install()
    body = widgets.widget(spec={}, status={"replicas": 7})
    created = await kube_calls.post(widgets.path(), body)
    assert "status" not in created.body
    ignored = await kube_calls.merge(widgets.path("w"), {"status": {"replicas": 7}})
    assert "status" not in ignored.body
    assert ignored.revision == created.revision
    change = {
        "metadata": {"labels": {"x": "y"}},
        "spec": {"replicas": 9},
        "status": {"replicas": 2, "none": 1},
    }
    written = await kube_calls.merge(widgets.path("w", "status"), change)
    assert written.body["status"] == {"replicas": 2}
    assert written.body["spec"]["replicas"] == 1
    assert "labels" not in written.body["metadata"]
    assert written.body["metadata"]["generation"] == 1
    put = {**written.body, "status": {"replicas": 3}}
    assert (await kube_calls.put(widgets.path("w", "status"), put)).code == 200
    stale = await kube_calls.put(widgets.path("w", "status"), put)
    assert (stale.code, stale.body["reason"]) == (409, "Conflict")


async def test_a_generation_counts_changes_of_the_spec(
    kube_calls: KubeCalls, namespace: str
) -> None:
    widgets = await Widgets(kube_calls, namespace).install()
    await kube_calls.post(widgets.path(), widgets.widget(spec={}))
    labelled = await kube_calls.merge(widgets.path("w"), {"metadata": {"labels": {"a": "b"}}})
    assert labelled.body["metadata"]["generation"] == 1
    changed = await kube_calls.merge(widgets.path("w"), {"spec": {"replicas": 2}})
    assert changed.body["metadata"]["generation"] == 2
    forced = await kube_calls.merge(
        widgets.path("w"), {"metadata": {"generation": 9}, "spec": {"replicas": 3}}
    )
    assert forced.body["metadata"]["generation"] == 3


async def test_without_a_status_subresource_a_status_is_a_field_like_any(
    kube_calls: KubeCalls, namespace: str
) -> None:
    widgets = await Widgets(kube_calls, namespace).install(subresources=False)
    body = widgets.widget(spec={}, status={"replicas": 1})
    created = await kube_calls.post(widgets.path(), body)
    assert created.body["status"] == {"replicas": 1}
    changed = await kube_calls.merge(widgets.path("w"), {"status": {"replicas": 2}})
    assert changed.body["metadata"]["generation"] == 2
    assert (await kube_calls.get(widgets.path("w", "status"))).code == 404
    assert (await kube_calls.get(widgets.path("w", "scale"))).code == 404


async def test_the_scale_of_a_custom_object(kube_calls: KubeCalls, namespace: str) -> None:
    widgets = await Widgets(kube_calls, namespace).install()
    await kube_calls.post(widgets.path(), widgets.widget(spec={"replicas": 2}))
    status = {"status": {"replicas": 1, "selector": "a=b"}}
    await kube_calls.merge(widgets.path("w", "status"), status)
    scale = await kube_calls.get(widgets.path("w", "scale"))
    meta = scale.body.pop("metadata")
    assert (meta["name"], meta["namespace"]) == ("w", namespace)
    assert scale.body == {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "spec": {"replicas": 2},
        "status": {"replicas": 1, "selector": "a=b"},
    }
    new = {**scale.body, "metadata": meta, "spec": {"replicas": 5}}
    put = await kube_calls.put(widgets.path("w", "scale"), new)
    assert (put.code, put.body["spec"]) == (200, {"replicas": 5})
    stale = await kube_calls.put(widgets.path("w", "scale"), new)
    assert (stale.code, stale.body["reason"]) == (409, "Conflict")
    found = (await kube_calls.get(widgets.path("w"))).body
    assert found["spec"]["replicas"] == 5
    assert found["metadata"]["generation"] == 2
    negative = await kube_calls.merge(widgets.path("w", "scale"), {"spec": {"replicas": -1}})
    assert (negative.code, negative.body["reason"]) == (422, "Invalid")
    assert (await kube_calls.get(widgets.path("none", "scale"))).code == 404


async def test_the_scale_of_a_deployment(kube_calls: KubeCalls, namespace: str) -> None:
    path = path_of("deployments", namespace, "d", group="apps")
    template = {
        "metadata": {"labels": {"a": "b"}},
        "spec": {"containers": [{"name": "c", "image": "i:1"}]},
    }
    spec = {"replicas": 2, "selector": {"matchLabels": {"a": "b"}}, "template": template}
    await kube_calls.post(
        path_of("deployments", namespace, group="apps"), {"metadata": {"name": "d"}, "spec": spec}
    )
    scale = (await kube_calls.get(f"{path}/scale")).body
    assert scale["status"] == {"replicas": 0, "selector": "a=b"}
    changed = await kube_calls.merge(f"{path}/scale", {"spec": {"replicas": 0}})
    assert changed.body["spec"] == {}
    assert (await kube_calls.get(path)).body["spec"]["replicas"] == 0
    other = {"metadata": {"uid": "none"}, "spec": {"replicas": 3}}
    refused = await kube_calls.merge(f"{path}/scale", other)
    assert (refused.code, refused.body["reason"]) == (409, "Conflict")


async def test_a_role_is_scaled_where_its_name_still_stands(
    kube_calls: KubeCalls, namespace: str
) -> None:
    widgets = await Widgets(kube_calls, namespace).install()
    spec = {"roles": [{"name": "prefill"}, {"name": "decode"}]}
    created = await kube_calls.post(widgets.path(), widgets.widget(spec=spec))
    uid = created.body["metadata"]["uid"]

    def patch(name: str, uid: str) -> list[Document]:
        return [
            {"op": "test", "path": "/metadata/uid", "value": uid},
            {"op": "test", "path": "/spec/roles/1/name", "value": name},
            {"op": "replace", "path": "/spec/roles/1/replicas", "value": 4},
        ]

    for wrong in (patch("prefill", uid), patch("decode", "none")):
        refused = await kube_calls.json_patch(widgets.path("w"), wrong)
        assert (refused.code, refused.body["reason"]) == (422, "Invalid")
    done = await kube_calls.json_patch(widgets.path("w"), patch("decode", uid))
    assert [role["replicas"] for role in done.body["spec"]["roles"]] == [1, 4]


async def test_foreign_definitions_are_taken(kube_calls: KubeCalls, namespace: str) -> None:
    """By the real server too; they stay there, for all tests of the process."""
    for definition in (pod_group_definition(), leader_worker_set_definition()):
        answer = await kube_calls.post(CRDS, definition)
        assert answer.code in (201, 409), answer
    path = path_of("podgroups", namespace, group="scheduling.volcano.sh", version="v1beta1")
    body = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": "g"},
        "spec": {"minMember": 2, "subGroupPolicy": [{"name": "prefill", "minSubGroups": 1}]},
    }

    async def created() -> bool:
        return (await kube_calls.post(path, body)).code in (201, 409)

    await eventually(created, what="PodGroups are served")
    spec = (await kube_calls.get(f"{path}/g")).body["spec"]
    assert spec["queue"] == "default"
    assert spec["subGroupPolicy"] == [{"name": "prefill", "minSubGroups": 1}]


async def test_an_older_volcano_knows_no_subgroups(fake_kube_server: KubeServer) -> None:
    assert fake_kube_server.fake is not None
    fake_kube_server.fake.install(pod_group_definition(subgroups=False))
    body = {"metadata": {"name": "g"}, "spec": {"minMember": 2, "subGroupPolicy": [{"name": "x"}]}}
    path = path_of("podgroups", "default", group="scheduling.volcano.sh", version="v1beta1")
    async with fake_kube_server.calls() as calls:
        created = await calls.post(path, {**body, "kind": "PodGroup"})
    assert created.body["spec"] == {"minMember": 2, "queue": "default"}


@pytest.mark.parametrize(
    ("spec", "reason", "field"),
    [
        ({"replicas": "two"}, "FieldValueTypeInvalid", "spec.replicas"),
        ({"mode": "c"}, "FieldValueNotSupported", "spec.mode"),
        ({"roles": [{"replicas": 1}]}, "FieldValueRequired", "spec.roles[0].name"),
        ({"roles": [{"name": "a"}, {"name": "a"}]}, "FieldValueDuplicate", "spec.roles[1]"),
        ({"names": [1]}, "FieldValueTypeInvalid", "spec.names[0]"),
        ({"size": 0}, "FieldValueInvalid", "spec.size"),
        ({"code": "1x"}, "FieldValueInvalid", "spec.code"),
    ],
)
async def test_what_the_schema_forbids_is_refused(
    kube_calls: KubeCalls, namespace: str, spec: Document, reason: str, field: str
) -> None:
    widgets = await Widgets(kube_calls, namespace).install()
    refused = await kube_calls.post(widgets.path(), widgets.widget(spec=spec))
    assert (refused.code, refused.body["reason"]) == (422, "Invalid")
    causes = refused.body["details"]["causes"]
    assert (reason, field) in [(cause["reason"], cause["field"]) for cause in causes]
    assert refused.body["details"]["kind"] == "Widget"
    await kube_calls.post(widgets.path(), widgets.widget(spec={}))
    conditions = widgets.widget(status={"conditions": [{"type": "Ready"}]})
    status = await kube_calls.apply(widgets.path("w", "status"), conditions, manager="m")
    assert status.code == 422
    assert status.body["details"]["causes"][0]["field"] == "status.conditions[0].status"
