"""Server-side apply and managed fields on both servers: who owns what, and what follows."""

import itertools
from typing import Any

import pytest_asyncio
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.kubernetes import fieldsets
from tests.fakes.kubernetes.shapes import BUILT_IN
from tests.kube.definitions import Widgets
from tests.support.kube_calls import Answer, KubeCalls, path_of

Document = dict[str, Any]


def config_map(**data: str) -> Document:
    meta = {"name": "a"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}


def owned(answer: Answer) -> dict[tuple[str, str, str], Document]:
    """What each (manager, operation, subresource) owns."""
    return {
        (entry["manager"], entry["operation"], entry.get("subresource", "")): entry["fieldsV1"]
        for entry in answer.body["metadata"]["managedFields"]
    }


class Applied:
    """One config map, applied by several managers."""

    def __init__(self, calls: KubeCalls, namespace: str) -> None:
        self.calls = calls
        self.path = path_of("configmaps", namespace, "a")

    async def by(self, manager: str, force: bool = False, **data: str) -> Answer:
        query = {"force": "true"} if force else {}
        return await self.calls.apply(self.path, config_map(**data), manager=manager, **query)


@pytest_asyncio.fixture
async def applied(kube_calls: KubeCalls, namespace: str) -> Applied:
    return Applied(kube_calls, namespace)


async def test_an_apply_creates_then_changes_then_rests(applied: Applied) -> None:
    first = await applied.by("m", k="1")
    assert first.code == 201
    second = await applied.by("m", k="2")
    assert (second.code, second.body["data"]) == (200, {"k": "2"})
    third = await applied.by("m", k="2")
    assert third.revision == second.revision
    assert owned(third) == {("m", "Apply", ""): {"f:data": {"f:k": {}}}}


async def test_fields_that_are_no_longer_applied_go(applied: Applied) -> None:
    await applied.by("m", k="1", l="2")
    answer = await applied.by("m", k="1")
    assert answer.body["data"] == {"k": "1"}


async def test_fields_that_another_owns_too_stay(applied: Applied) -> None:
    await applied.by("m", k="1", l="2")
    await applied.by("other", l="2")
    answer = await applied.by("m", k="1")
    assert answer.body["data"] == {"k": "1", "l": "2"}
    assert owned(answer)["other", "Apply", ""] == {"f:data": {"f:l": {}}}


async def test_another_value_is_a_conflict_that_names_the_manager(applied: Applied) -> None:
    await applied.by("m", k="1")
    refused = await applied.by("other", k="2")
    assert (refused.code, refused.body["reason"]) == (409, "Conflict")
    assert refused.body["message"] == 'Apply failed with 1 conflict: conflict with "m": .data.k'
    assert refused.body["details"] == {
        "causes": [
            {
                "reason": "FieldManagerConflict",
                "message": 'conflict with "m"',
                "field": ".data.k",
            }
        ]
    }


async def test_several_conflicts(applied: Applied) -> None:
    await applied.by("m", k="1", l="1")
    refused = await applied.by("other", k="2", l="2")
    assert refused.body["message"] == (
        'Apply failed with 2 conflicts: conflicts with "m":\n- .data.k\n- .data.l'
    )
    assert len(refused.body["details"]["causes"]) == 2


async def test_a_plain_write_owns_what_it_changes(applied: Applied, kube_calls: KubeCalls) -> None:
    await applied.by("m", k="1", l="1")
    change = {"data": {"k": "2"}}
    patched = await kube_calls.merge(applied.path, change, fieldManager="hand")
    assert owned(patched) == {
        ("m", "Apply", ""): {"f:data": {"f:l": {}}},
        ("hand", "Update", ""): {"f:data": {"f:k": {}}},
    }
    refused = await applied.by("m", k="3", l="1")
    assert refused.code == 409
    assert refused.body["message"] == (
        'Apply failed with 1 conflict: conflict with "hand" using v1: .data.k'
    )


async def test_force_takes_ownership(applied: Applied) -> None:
    await applied.by("m", k="1", l="1")
    taken = await applied.by("other", force=True, k="2")
    assert taken.body["data"] == {"k": "2", "l": "1"}
    assert owned(taken) == {
        ("m", "Apply", ""): {"f:data": {"f:l": {}}},
        ("other", "Apply", ""): {"f:data": {"f:k": {}}},
    }


async def test_what_is_given_up_keeps_its_value(applied: Applied, kube_calls: KubeCalls) -> None:
    await applied.by("m", k="1")
    await applied.by("other", force=True, k="2")
    answer = await applied.by("m", l="1")
    assert answer.body["data"] == {"k": "2", "l": "1"}
    assert owned(answer) == {
        ("m", "Apply", ""): {"f:data": {"f:l": {}}},
        ("other", "Apply", ""): {"f:data": {"f:k": {}}},
    }


async def test_the_creator_owns_everything(kube_calls: KubeCalls, namespace: str) -> None:
    body = config_map(k="1")
    body["metadata"]["labels"] = {"x": "y"}
    answer = await kube_calls.post(path_of("configmaps", namespace), body, fieldManager="maker")
    assert owned(answer).keys() == {("maker", "Update", "")}
    fields = owned(answer)["maker", "Update", ""]
    assert "f:k" in fields["f:data"]
    assert "f:x" in fields["f:metadata"]["f:labels"]
    refused = await kube_calls.apply(
        path_of("configmaps", namespace, "a"), config_map(k="2"), manager="m"
    )
    assert refused.code == 409


async def test_without_a_field_manager_the_client_is_named(
    kube_calls: KubeCalls, namespace: str
) -> None:
    answer = await kube_calls.post(path_of("configmaps", namespace), config_map(k="1"))
    assert [each[0] for each in owned(answer)] == ["kube-calls"]


async def test_an_apply_says_who_applies_and_what(applied: Applied, kube_calls: KubeCalls) -> None:
    refused = await kube_calls.call(
        "PATCH", applied.path, config_map(), content_type="application/apply-patch+yaml"
    )
    assert refused.code == 422
    assert "fieldManager: Required value" in refused.body["message"]
    nameless = await kube_calls.apply(
        applied.path, {"apiVersion": "v1", "kind": "ConfigMap"}, manager="m"
    )
    assert (nameless.code, nameless.body["reason"]) == (400, "BadRequest")
    kindless = await kube_calls.apply(applied.path, {"metadata": {"name": "a"}}, manager="m")
    assert kindless.code == 400
    managed = config_map()
    managed["metadata"]["managedFields"] = [{"manager": "x"}]
    assert (await kube_calls.apply(applied.path, managed, manager="m")).code == 400


async def test_an_apply_to_a_uid_or_revision(applied: Applied, kube_calls: KubeCalls) -> None:
    uid = "00000000-0000-0000-0000-000000000000"
    gone = config_map()
    gone["metadata"]["uid"] = uid
    refused = await kube_calls.apply(applied.path, gone, manager="m")
    assert (refused.code, refused.body["reason"]) == (409, "Conflict")
    assert "uid mismatch" in refused.body["message"]
    created = await applied.by("m", k="1")
    other = await kube_calls.apply(applied.path, gone, manager="m")
    assert (other.code, other.body["reason"]) == (422, "Invalid")
    await applied.by("m", k="2")
    stale = config_map(k="3")
    stale["metadata"]["resourceVersion"] = created.revision
    refused = await kube_calls.apply(applied.path, stale, manager="m")
    assert (refused.code, refused.body["reason"]) == (409, "Conflict")


def containers(*names: str, image: str = "i:1", **env: str) -> Document:
    variables = [{"name": name, "value": value} for name, value in env.items()]
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "d"},
        "spec": {
            "selector": {"matchLabels": {"a": "b"}},
            "template": {
                "metadata": {"labels": {"a": "b"}},
                "spec": {
                    "containers": [
                        {"name": name, "image": image, "env": variables} for name in names
                    ]
                },
            },
        },
    }


async def test_lists_of_built_in_types_merge_by_their_keys(
    kube_calls: KubeCalls, namespace: str
) -> None:
    path = path_of("deployments", namespace, "d", group="apps")
    await kube_calls.apply(path, containers("a", "b", X="1", Y="2"), manager="m")
    sidecar = containers("s")
    await kube_calls.apply(path, sidecar, manager="injector")
    answer = await kube_calls.apply(path, containers("b", X="3"), manager="m")
    found = answer.body["spec"]["template"]["spec"]["containers"]
    assert [each["name"] for each in found] == ["b", "s"]
    assert found[0]["env"] == [{"name": "X", "value": "3"}]
    fields = owned(answer)["m", "Apply", ""]["f:spec"]["f:template"]["f:spec"]["f:containers"]
    assert fields == {
        'k:{"name":"b"}': {
            ".": {},
            "f:env": {'k:{"name":"X"}': {".": {}, "f:name": {}, "f:value": {}}},
            "f:image": {},
            "f:name": {},
        }
    }


async def test_owner_references_are_owned_one_by_one(kube_calls: KubeCalls, namespace: str) -> None:
    path = path_of("configmaps", namespace, "a")

    def with_owner(uid: str) -> Document:
        reference = {"apiVersion": "v1", "kind": "Secret", "name": uid, "uid": uid}
        meta = {"name": "a", "ownerReferences": [reference]}
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}

    await kube_calls.apply(path, with_owner("u1"), manager="m")
    answer = await kube_calls.apply(path, with_owner("u2"), manager="other")
    references = answer.body["metadata"]["ownerReferences"]
    assert sorted(each["uid"] for each in references) == ["u1", "u2"]
    assert owned(answer)["m", "Apply", ""] == {
        "f:metadata": {"f:ownerReferences": {'k:{"uid":"u1"}': {}}}
    }


async def test_custom_lists_are_as_their_schema_says(kube_calls: KubeCalls, namespace: str) -> None:
    widgets = await Widgets(kube_calls, namespace).install()
    path = widgets.path("w")

    def spec(manager: str) -> Document:
        return {"names": [manager], "roles": [{"name": manager}], "free": {"l": [manager]}}

    first = widgets.widget(spec=spec("m"))
    assert (await kube_calls.apply(path, first, manager="m")).code == 201
    second = widgets.widget(spec={"roles": [{"name": "other", "replicas": 2}]})
    answer = await kube_calls.apply(path, second, manager="other")
    assert answer.body["spec"]["roles"] == [
        {"name": "m", "replicas": 1},
        {"name": "other", "replicas": 2},
    ]
    for atomic in ({"names": ["other"]}, {"free": {"l": ["other"]}}):
        refused = await kube_calls.apply(path, widgets.widget(spec=atomic), manager="third")
        assert refused.code == 409, atomic


async def test_conditions_of_a_status_merge_by_type(kube_calls: KubeCalls, namespace: str) -> None:
    widgets = await Widgets(kube_calls, namespace).install()
    await kube_calls.post(widgets.path(), widgets.widget(spec={}))

    def condition(kind: str) -> Document:
        return widgets.widget(status={"conditions": [{"type": kind, "status": "True"}]})

    path = widgets.path("w", "status")
    await kube_calls.apply(path, condition("Ready"), manager="m")
    answer = await kube_calls.apply(path, condition("Scaled"), manager="other")
    conditions = answer.body["status"]["conditions"]
    assert sorted(each["type"] for each in conditions) == ["Ready", "Scaled"]
    assert owned(answer)["other", "Apply", "status"] == {
        "f:status": {
            "f:conditions": {'k:{"type":"Scaled"}': {".": {}, "f:status": {}, "f:type": {}}}
        }
    }
    gone = await kube_calls.apply(path, widgets.widget(status={}), manager="m")
    assert [each["type"] for each in gone.body["status"]["conditions"]] == ["Scaled"]


_VALUES = st.recursive(
    st.integers(0, 3), lambda inner: st.dictionaries(st.sampled_from("abcd"), inner, max_size=3)
)
_OBJECTS = st.dictionaries(st.sampled_from("abcd"), _VALUES, min_size=1, max_size=3)


@given(_OBJECTS, _OBJECTS)
def test_what_is_gone_and_what_has_changed_make_one_object_of_another(
    old: Document, new: Document
) -> None:
    """Members of the new one are those of the old that are left, and what has changed."""
    before, after = fieldsets.fields_of(old, BUILT_IN), fieldsets.fields_of(new, BUILT_IN)
    changed, gone = fieldsets.changes(old, new, BUILT_IN)
    kept = fieldsets.without(before, gone)
    together = fieldsets.union(kept, changed)
    assert fieldsets.minus(after, together) == {}


@given(_OBJECTS, _OBJECTS, _OBJECTS)
def test_sets_of_fields_are_sets(one: Document, two: Document, three: Document) -> None:
    a, b, c = (fieldsets.fields_of(each, BUILT_IN) for each in (one, two, three))
    for x, y in itertools.permutations((a, b, c), 2):
        assert fieldsets.minus(x, fieldsets.union(x, y)) == {}
        assert fieldsets.common(x, fieldsets.minus(y, x)) == {}
        rest = fieldsets.minus(x, y)
        shared = fieldsets.common(x, y)
        assert members(fieldsets.union(rest, shared)) == members(x)


def members(fields: Document) -> set[str]:
    return set(fieldsets.paths(fields))
