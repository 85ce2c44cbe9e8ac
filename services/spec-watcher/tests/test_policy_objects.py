"""Objects with Kubernetes' semantics: identity, generation, status, preconditions, hand-over."""

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferbus_contracts.api.objects import Change, Preconditions
from inferbus_contracts.errors import ErrorCode, ProblemsError
from inferbus_contracts.keys import ObjectKey
from inferbus_shared.objects.picture import StoredObject
from inferbus_spec_watcher.policy_objects import (
    BUILT_IN,
    Written,
    apply_document,
    check,
    last_manager,
    mark_deleted,
    owners_of,
    scale,
    set_status,
    spec_of,
)

KEY = ObjectKey("ConfigMap", "default", "m")
NAMES = st.sampled_from(["a", "b", "c"])
TEXTS = st.sampled_from(["x", "y", "z"])
DATA = st.dictionaries(NAMES, st.one_of(TEXTS, st.dictionaries(NAMES, TEXTS, max_size=2)))
MANAGERS = st.sampled_from(["cli", "folder"])


def document(
    data: dict[str, Any], labels: dict[str, str] | None = None, name: str = "m"
) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": name, "namespace": "default"}
    if labels:
        metadata["labels"] = labels
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


DOCUMENTS = st.builds(document, DATA, st.dictionaries(NAMES, TEXTS, max_size=2))


def applied(
    stored: StoredObject | None,
    body: dict[str, Any],
    manager: str = "cli",
    *,
    force: bool = False,
    uid: str = "new",
) -> Written:
    return apply_document(KEY, stored, body, manager, uid=uid, now_ms=1000, force=force)


def as_stored(written: Written, revision: int = 1) -> StoredObject:
    return StoredObject(json.loads(json.dumps(written.object)), revision)


def created(body: dict[str, Any], manager: str = "cli") -> StoredObject:
    return as_stored(applied(None, body, manager, uid="first"))


def after(history: list[tuple[str, dict[str, Any]]]) -> StoredObject:
    """What stands there after these applies, each taken over by force."""
    (manager, first), *rest = history
    stored = created(first, manager)
    for manager, body in rest:
        stored = as_stored(applied(stored, body, manager, force=True), stored.revision + 1)
    return stored


HISTORIES = st.lists(st.tuples(MANAGERS, DOCUMENTS), min_size=1, max_size=4)


@given(DOCUMENTS)
def test_what_is_created_is_the_document_with_an_identity(body: dict[str, Any]) -> None:
    written = applied(None, body)
    metadata = written.object["metadata"]
    assert written.change is Change.CREATED
    assert spec_of(written.object) == spec_of(body)
    assert (metadata["uid"], metadata["generation"]) == ("new", 1)
    assert metadata["creationTimestamp"] == "1970-01-01T00:00:01.000Z"
    assert last_manager(written.object) == "cli"


@given(HISTORIES, MANAGERS, DOCUMENTS)
def test_applying_again_changes_nothing(
    history: list[Any], manager: str, body: dict[str, Any]
) -> None:
    once = as_stored(applied(after(history), body, manager, force=True))
    again = applied(once, body, manager)
    assert again == Written(once.object, Change.UNCHANGED)


@given(HISTORIES, MANAGERS, DOCUMENTS)
def test_the_generation_counts_changes_of_the_spec_and_nothing_else(
    history: list[Any], manager: str, body: dict[str, Any]
) -> None:
    stored = after(history)
    written = applied(stored, body, manager, force=True)
    changed = spec_of(written.object) != spec_of(stored.object)
    assert written.object["metadata"]["generation"] == stored.generation + changed
    assert not (changed and written.change is Change.UNCHANGED)


@given(HISTORIES, MANAGERS, DOCUMENTS)
def test_who_an_object_is_never_changes(
    history: list[Any], manager: str, body: dict[str, Any]
) -> None:
    stored = after(history)
    metadata = applied(stored, body, manager, force=True, uid="another").object["metadata"]
    for name in ("name", "namespace", "uid", "creationTimestamp"):
        assert metadata[name] == stored.object["metadata"][name]


@given(HISTORIES, DOCUMENTS)
def test_a_status_survives_every_apply_and_no_apply_brings_one(
    history: list[Any], body: dict[str, Any]
) -> None:
    stored = as_stored(set_status(after(history), {"replicas": 3}))
    intruding = body | {"status": {"replicas": 99}}
    written = applied(stored, intruding, force=True)
    assert written.object["status"] == {"replicas": 3}
    assert "status" not in applied(None, intruding).object


@given(HISTORIES, st.dictionaries(NAMES, st.integers(), min_size=1))
def test_a_status_changes_neither_generation_nor_owners(
    history: list[Any], status: dict[str, Any]
) -> None:
    stored = after(history)
    written = set_status(stored, status)
    assert written.change is Change.CONFIGURED
    assert written.object == stored.object | {"status": status}
    assert set_status(as_stored(written), status).change is Change.UNCHANGED


@given(HISTORIES, MANAGERS, DOCUMENTS)
def test_a_refused_apply_names_each_contested_field_and_force_takes_them(
    history: list[Any], manager: str, body: dict[str, Any]
) -> None:
    stored = after(history)
    before = copy.deepcopy(stored)
    try:
        applied(stored, body, manager)
    except ProblemsError as error:
        for problem in error.problems:
            assert problem.code is ErrorCode.FIELD_OWNED_BY_OTHER
            assert problem.object == str(KEY)
            assert problem.field
            assert problem.value is not None
            assert "--force" in problem.remedy
    taken = applied(stored, body, manager, force=True)
    assert stored == before
    claimed = owners_of(taken.object)[manager]
    assert {
        f"/data/{name}" for name, value in body["data"].items() if value != {}
    } & claimed or not ([value for value in body["data"].values() if isinstance(value, str)])


def test_two_managers_meet() -> None:
    ours = created(document({"a": "x"}), "cli")
    with pytest.raises(ProblemsError) as caught:
        applied(ours, document({"a": "y"}), "folder")
    (problem,) = caught.value.problems
    assert problem.field == "data.a"
    assert problem.value == "y"
    assert "belongs to cli" in problem.message
    both = as_stored(applied(ours, document({"a": "x", "b": "z"}), "folder"))
    assert both.object["data"] == {"a": "x", "b": "z"}
    left = as_stored(applied(both, document({}), "cli"))
    assert left.object["data"] == {"a": "x", "b": "z"}, "the folder still wants both"
    gone = applied(left, document({}), "folder")
    assert gone.object["data"] == {}


def test_what_is_built_in_gives_way_whole_to_anybody() -> None:
    built_in = created(document({"a": "x", "b": "y"}), BUILT_IN)
    own = applied(built_in, document({"b": "z"}), "cli")
    assert own.object["data"] == {"b": "z"}
    assert own.object["metadata"]["uid"] == built_in.uid
    assert set(owners_of(own.object)) == {"cli"}
    with pytest.raises(ProblemsError):
        applied(as_stored(own), document({"b": "y"}), BUILT_IN)


SERVING: dict[str, Any] = {
    "apiVersion": "workload.serving.volcano.sh/v1alpha1",
    "kind": "ModelServing",
    "metadata": {"name": "m", "namespace": "default"},
    "spec": {
        "replicas": 1,
        "schedulerName": "volcano",
        "template": {
            "roles": [
                {
                    "name": "main",
                    "replicas": 1,
                    "workerReplicas": 0,
                    "entryTemplate": {"spec": {"containers": [{"name": "c", "image": "i"}]}},
                }
            ]
        },
    },
}


@given(st.integers(0, 9), st.integers(0, 9))
def test_scaling_counts_only_where_the_number_changes(first: int, second: int) -> None:
    stored = created(SERVING)
    once = as_stored(scale(stored, "", first, "d1"))
    assert once.object["spec"]["replicas"] == first
    assert once.generation == stored.generation + (first != 1)
    twice = scale(once, "", second, "d2")
    assert twice.object["metadata"]["generation"] == once.generation + (second != first)
    assert scale(as_stored(twice), "", second, "d2").change is Change.UNCHANGED


def test_a_role_is_scaled_and_an_unknown_one_refused() -> None:
    stored = created(SERVING)
    scaled = scale(stored, "main", 4, "d1").object["spec"]
    assert scaled["template"]["roles"][0]["replicas"] == 4
    assert scaled["replicas"] == 1
    with pytest.raises(KeyError):
        scale(stored, "none", 4, "d1")


def test_an_applier_takes_replicas_back_from_a_decision_without_force() -> None:
    """Where no policy owns them any more, the manifest counts."""
    scaled = as_stored(scale(created(SERVING), "", 5, "d1"))
    again = applied(scaled, SERVING)
    assert again.object["spec"]["replicas"] == 1


def stored_at(uid: str = "u", generation: int = 3, revision: int = 7) -> StoredObject:
    return StoredObject({"metadata": {"uid": uid, "generation": generation}}, revision)


@pytest.mark.parametrize(
    ("wanted", "code", "field"),
    [
        (Preconditions(uid="other"), ErrorCode.CONFLICT, "metadata.uid"),
        (Preconditions(generation=2), ErrorCode.CONFLICT, "metadata.generation"),
        (Preconditions(revision=8), ErrorCode.CONFLICT, "metadata.resourceVersion"),
        (Preconditions(absent=True), ErrorCode.ALREADY_EXISTS, "metadata.uid"),
    ],
)
def test_an_unmet_condition_is_told_with_both_values(
    wanted: Preconditions, code: ErrorCode, field: str
) -> None:
    with pytest.raises(ProblemsError) as caught:
        check(KEY, stored_at(), wanted)
    (problem,) = caught.value.problems
    assert (problem.code, problem.field) == (code, field)


def test_conditions_that_hold_let_a_change_pass() -> None:
    check(KEY, stored_at(), Preconditions(uid="u", generation=3, revision=7))
    check(KEY, stored_at(), Preconditions())
    check(KEY, None, Preconditions(absent=True))


@pytest.mark.parametrize(
    "wanted", [Preconditions(uid="u"), Preconditions(generation=1), Preconditions(revision=1)]
)
def test_a_condition_on_an_object_that_is_gone_is_not_met(wanted: Preconditions) -> None:
    with pytest.raises(ProblemsError) as caught:
        check(KEY, None, wanted)
    assert caught.value.problems[0].code is ErrorCode.NOT_FOUND


@given(st.lists(st.integers(0, 60), min_size=1, max_size=5))
def test_the_grace_of_a_pod_that_ends_only_ever_shortens(wishes: list[int]) -> None:
    stored = stored_at()
    for moment, grace in enumerate(wishes):
        stored = as_stored(mark_deleted(stored, moment * 1000, grace))
    metadata = stored.object["metadata"]
    assert metadata["deletionGracePeriodSeconds"] == min(wishes)
    assert metadata["deletionTimestamp"] == "1970-01-01T00:00:00.000Z", "of the first wish"
    assert stored.generation == 3
