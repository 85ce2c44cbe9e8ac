"""What is read of a cluster's objects, and what an apply has to send."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferbus_contracts.admission import admit
from inferbus_contracts.api.objects import AppliedDocument
from inferbus_contracts.keys import ObjectKey
from inferbus_shared.kube.resources import resource_of
from inferbus_spec_watcher.announcer import announcement, decision_of
from inferbus_spec_watcher.policy_claims import claims_field, is_applied
from inferbus_spec_watcher.policy_cluster_objects import ClusterObject, read_object
from inferbus_spec_watcher.policy_cluster_units import bare, gives_way, plan_cluster_unit
from inferbus_spec_watcher.policy_field_managers import field_manager, manager_of
from inferbus_spec_watcher.policy_merge import merge_patch
from inferbus_spec_watcher.policy_notices import Notice, notices
from inferbus_spec_watcher.policy_objects import EXPANDER, last_manager, owners_of
from inferbus_spec_watcher.policy_stamps import missing_stamps

Document = dict[str, Any]

APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
SERVING = resource_of("ModelServing")
KEY = ObjectKey("ModelServing", "default", "chat")


def entry(manager: str, time: str = "2026-01-01T00:00:00Z", **more: Any) -> Document:
    return {"manager": manager, "operation": "Update", "time": time, "fieldsV1": {}, **more}


def serving(*managed: Document, **metadata: Any) -> Document:
    role = {
        "name": "main",
        "workerReplicas": 0,
        "entryTemplate": {"spec": {"containers": [{"name": "engine", "image": "vllm:1"}]}},
    }
    return {
        "apiVersion": "workload.serving.volcano.sh/v1alpha1",
        "kind": "ModelServing",
        "metadata": {
            "name": "chat",
            "namespace": "default",
            "uid": "u",
            "generation": 3,
            "resourceVersion": "42",
            "managedFields": list(managed),
            **metadata,
        },
        "spec": {"replicas": 2, "template": {"roles": [role]}},
        "status": {"replicas": 1},
    }


def model(*managed: Document, **spec: Any) -> ClusterObject:
    document = {
        "apiVersion": "llmaz.io/v1alpha1",
        "kind": "OpenModel",
        "metadata": {
            "name": "opt",
            "uid": "u",
            "generation": 1,
            "resourceVersion": "7",
            "managedFields": list(managed),
            **spec.pop("metadata", {}),
        },
        "spec": {"familyName": "opt", "source": {"uri": "ollama://opt"}, **spec},
    }
    return read_object(resource_of("OpenModel"), document)


def test_an_object_is_read_as_admission_normalises_it() -> None:
    stored = read_object(SERVING, serving(annotations={APPLIED: "{}", "a": "b"}))
    assert (stored.uid, stored.generation, stored.revision) == ("u", 3, 42)
    assert stored.object["spec"]["schedulerName"] == "volcano", "a default"
    assert stored.object["status"] == {"replicas": 1}
    assert stored.object["metadata"]["annotations"] == {"a": "b"}
    assert stored.problems == ()


def test_what_is_refused_is_kept_as_it_stands_with_the_reasons() -> None:
    stored = read_object(SERVING, serving(annotations={"inferbus.dev/mode": "sometimes"}))
    assert [problem.object for problem in stored.problems] == [str(KEY)]
    assert stored.object["spec"] == serving()["spec"]


@pytest.mark.parametrize("version", ["", "x", None])
def test_what_has_no_revision_is_no_object(version: object) -> None:
    with pytest.raises((ValueError, TypeError)):
        read_object(SERVING, serving(resourceVersion=version))


def test_a_foreign_service_is_kept_by_its_identity_alone() -> None:
    document = {
        "metadata": {"name": "a", "namespace": "b", "uid": "u", "resourceVersion": "1"},
        "spec": {"ports": [{"port": 1}]},
    }
    stored = read_object(resource_of("CoreService"), document)
    assert "spec" not in stored.object
    assert (stored.object["kind"], stored.generation) == ("Service", 1)
    own = entry("inferbus-expander", operation="Apply")
    document["metadata"]["managedFields"] = [own]  # type: ignore[index]
    assert "spec" in read_object(resource_of("CoreService"), document).object


def test_the_last_change_is_neither_a_status_nor_a_stamp() -> None:
    managed = [
        entry("kubectl", "2026-01-01T00:00:00Z"),
        entry("inferbus-folder", "2026-01-01T00:00:05Z", operation="Apply"),
        entry("inferbus-spec-watcher", "2026-01-01T00:00:07Z", operation="Apply"),
        entry("reconciler", "2026-01-01T00:00:09Z", subresource="status"),
    ]
    stored = read_object(SERVING, serving(*managed))
    assert last_manager(stored.object) == "folder"
    assert owners_of(stored.object).keys() == {"kubectl", "folder", "spec-watcher"}


def test_a_scale_after_its_note_follows_from_the_decision() -> None:
    managed = [entry("scale"), entry("scale", "2026-01-01T00:00:01Z", subresource="scale")]
    noted = {"inferbus.dev/decision-id": "d1"}
    stored = read_object(SERVING, serving(*managed, annotations=noted))
    fact = announcement(stored)
    assert (fact.changed_by, decision_of(fact)) == ("scale", "d1")
    later = entry("kubectl-edit", "2026-01-01T00:00:02Z")
    edited = read_object(SERVING, serving(*managed, later, annotations=noted))
    assert decision_of(announcement(edited)) == ""


def test_managers_keep_their_names() -> None:
    for name in ("cli", "folder", "scale", EXPANDER):
        assert manager_of(field_manager(name)) == name
    assert manager_of("kubectl-edit") == "kubectl-edit"


CLAIMS: Document = {
    "f:metadata": {"f:labels": {"f:a": {}}, "f:ownerReferences": {'k:{"uid":"u"}': {}}},
    "f:spec": {
        "f:list": {},
        "f:ports": {'k:{"port":80,"protocol":"TCP"}': {".": {}, "f:port": {}, "f:name": {}}},
        "f:set": {'v:"x"': {}},
        "f:replicas": {},
    },
}
WANTED: Document = {
    "metadata": {"name": "n", "labels": {"a": "1"}, "ownerReferences": [{"uid": "u"}]},
    "spec": {
        "list": [{"a": 1}, {"b": 2}],
        "ports": [{"port": 80, "name": "http"}],
        "set": ["x"],
        "replicas": 2,
    },
}


def test_what_holds_and_is_owned_is_applied() -> None:
    more = {**WANTED["spec"], "ports": [{"port": 80, "name": "http", "nodePort": 3}], "other": 1}
    found = {**WANTED, "spec": more}
    assert is_applied(WANTED, found, CLAIMS)
    assert is_applied({**WANTED, "spec": {**WANTED["spec"], "empty": {}}}, found, CLAIMS)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"replicas": 3}, "another value"),
        ({"list": [{"a": 1}]}, "a shorter list that is owned whole"),
        ({"list": []}, "an emptied list"),
        ({"ports": [{"port": 81, "name": "http"}]}, "another item"),
        ({"ports": [{"port": 80, "name": "http", "target": 1}]}, "a new field of an item"),
        ({"ports": []}, "an item given up"),
        ({"set": ["x", "y"]}, "a new value of a set"),
        ({"replicas": None}, "a field given up"),
        ({"fresh": 1}, "a field that another set to the same"),
    ],
)
def test_what_differs_in_value_or_owner_is_not_applied(change: Document, why: str) -> None:
    spec = {name: v for name, v in {**WANTED["spec"], **change}.items() if v is not None}
    wanted = {**WANTED, "spec": spec}
    assert not is_applied(wanted, {**WANTED, "spec": {**WANTED["spec"], "fresh": 1}}, CLAIMS), why


def test_a_claim_is_found_by_its_path() -> None:
    assert claims_field(CLAIMS, "spec", "replicas")
    assert not claims_field(CLAIMS, "spec", "createdAt")
    assert not claims_field({}, "spec")


json_values = st.recursive(
    st.booleans() | st.integers(-3, 3) | st.text("ab", max_size=2),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text("ab", max_size=1), inner),
    max_leaves=8,
)
documents = st.dictionaries(st.text("abc", min_size=1, max_size=1), json_values, max_size=4)


def patched(document: Any, patch: Any) -> Any:
    """RFC 7396, section 2, to the letter."""
    if not isinstance(patch, dict):
        return patch
    result = dict(document) if isinstance(document, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = patched(result.get(name), value)
    return result


@given(documents, documents)
def test_a_merge_patch_leads_from_one_to_the_other(before: Document, after: Document) -> None:
    patch = merge_patch(before, after)
    assert patched(before, patch) == after
    assert merge_patch(after, after) == {}


def condition(type_: str, status: str, reason: str = "R") -> Document:
    return {"type": type_, "status": status, "reason": reason, "message": "m"}


def test_turns_are_told_and_repetitions_are_not() -> None:
    refused = {"conditions": [condition("Accepted", "False", "Invalid")]}
    accepted = {"conditions": [condition("Accepted", "True"), condition("Ready", "False")]}
    assert notices({}, refused) == [Notice("Invalid", "m", warning=True)]
    assert notices(refused, accepted) == [Notice("R", "m")]
    assert notices(accepted, accepted) == []


def test_a_scaling_is_told_once() -> None:
    target = {"name": "chat", "desiredReplicas": 4, "lastScaleTime": "t1"}
    before, after = {}, {"homogeneousStatus": target}
    assert notices(before, after) == [Notice("Scaled", "chat was scaled to 4 replicas")]
    assert notices(after, {"homogeneousStatus": {**target, "desiredReplicas": 5}}) == []


def planned(document: Document, stored: ClusterObject | None, *roles: str) -> Document:
    (step,) = plan_cluster_unit(
        [AppliedDocument(object=document)],
        "cli",
        lookup=lambda _: stored,
        scaled={KEY: frozenset(roles)},
    )
    return step.manifest


def test_scaled_replicas_are_left_out_by_whoever_does_not_own_them() -> None:
    stored = read_object(SERVING, serving())
    manifest = planned({**serving(), "status": {}}, stored, "")
    assert "replicas" not in manifest["spec"]
    assert manifest["metadata"]["resourceVersion"] == "42"
    claims = {"f:spec": {"f:replicas": {}}}
    mine = entry("inferbus-cli", operation="Apply", fieldsV1=claims)
    asked = serving()
    asked["spec"]["replicas"] = 9
    manifest = planned(asked, read_object(SERVING, serving(mine)), "")
    assert manifest["spec"]["replicas"] == 2, "what is left out would go"


def test_scaled_replicas_of_a_role_are_repeated() -> None:
    asked = serving()
    asked["spec"]["template"]["roles"][0]["replicas"] = 5
    manifest = planned(asked, read_object(SERVING, serving()), "main")
    assert manifest["spec"]["template"]["roles"][0]["replicas"] == 1


def route(*managed: Document) -> ClusterObject:
    document = {
        "apiVersion": "networking.serving.volcano.sh/v1alpha1",
        "kind": "ModelRoute",
        "metadata": {
            "name": "r",
            "namespace": "default",
            "uid": "u",
            "resourceVersion": "1",
            "generation": 1,
            "managedFields": list(managed),
        },
        "spec": {"modelName": "m", "rules": [{"targetModels": [{"modelServerName": "s"}]}]},
    }
    return read_object(resource_of("ModelRoute"), document)


def test_a_rendered_route_gives_way_to_appliers_and_not_to_editors() -> None:
    key = ObjectKey("ModelRoute", "default", "r")
    rendered = entry("inferbus-expander", operation="Apply")
    assert not gives_way(key, route(rendered))
    assert not gives_way(key, route(rendered, entry("kubectl-edit")))
    assert gives_way(key, route(rendered, entry("kubectl-client-side-apply")))
    assert gives_way(key, route(rendered, entry("argocd", operation="Apply")))
    assert gives_way(key, route(rendered, entry("inferbus-cli", operation="Apply")))
    assert not gives_way(key, route(entry("kubectl", operation="Apply"))), "nothing was offered"


def test_a_model_is_stamped_once() -> None:
    manifest = missing_stamps(model(), now_ms=0)
    assert manifest is not None
    assert manifest["metadata"]["labels"] == {"llmaz.io/model-family-name": "opt"}
    assert manifest["spec"] == {"createdAt": "1970-01-01T00:00:00Z"}
    claims = {
        "f:metadata": {"f:labels": {"f:llmaz.io/model-family-name": {}}},
        "f:spec": {"f:createdAt": {}},
    }
    stamps = entry("inferbus-spec-watcher", operation="Apply", fieldsV1=claims)
    labels = {"labels": manifest["metadata"]["labels"]}
    stamped = model(stamps, createdAt="1970-01-01T00:00:00Z", metadata=labels)
    assert missing_stamps(stamped, now_ms=10**9) is None
    renamed = model(stamps, createdAt="1970-01-01T00:00:00Z", familyName="new", metadata=labels)
    again = missing_stamps(renamed, now_ms=10**9)
    assert again is not None
    assert again["spec"] == {"createdAt": "1970-01-01T00:00:00Z"}, "what is left out would go"


def test_a_bare_manifest_names_the_object_and_nothing_else() -> None:
    admitted = admit(serving()).object
    assert bare(admitted).keys() == {"apiVersion", "kind", "metadata"}
    assert bare(admitted)["metadata"] == {"name": "chat", "namespace": "default"}
