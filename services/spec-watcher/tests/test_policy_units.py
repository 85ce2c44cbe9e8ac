"""A unit of documents: planned whole, or refused whole with all that is wrong at its place."""

import itertools
from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferbus_contracts.api.objects import AppliedDocument, Change, Preconditions
from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_contracts.keys import ObjectKey
from inferbus_shared.objects.picture import StoredObject
from inferbus_spec_watcher.policy_objects import scale
from inferbus_spec_watcher.policy_units import PlannedObject, plan_unit, writes

GROUP = "workload.serving.volcano.sh/v1alpha1"
SERVING = ObjectKey("ModelServing", "default", "m")

Store = dict[ObjectKey, StoredObject]


def config_map(name: str, text: str = "x") -> dict[str, Any]:
    metadata = {"name": name}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"t": text}}


def serving(name: str = "m", replicas: int = 1, role_replicas: int = 1) -> dict[str, Any]:
    role = {
        "name": "main",
        "replicas": role_replicas,
        "workerReplicas": 0,
        "entryTemplate": {"spec": {"containers": [{"name": "c", "image": "i"}]}},
    }
    spec = {"replicas": replicas, "schedulerName": "volcano", "template": {"roles": [role]}}
    return {"apiVersion": GROUP, "kind": "ModelServing", "metadata": {"name": name}, "spec": spec}


def policy(name: str = "p") -> dict[str, Any]:
    metrics = [{"metricName": "kthena:num_requests_waiting", "targetValue": 1}]
    return {
        "apiVersion": GROUP,
        "kind": "AutoscalingPolicy",
        "metadata": {"name": name},
        "spec": {"metrics": metrics},
    }


def binding(name: str = "b", policy_name: str = "p") -> dict[str, Any]:
    target = {"targetRef": {"kind": "ModelServing", "name": "m"}}
    scaling = {"target": target, "minReplicas": 1, "maxReplicas": 3}
    return {
        "apiVersion": GROUP,
        "kind": "AutoscalingPolicyBinding",
        "metadata": {"name": name},
        "spec": {"policyRef": {"name": policy_name}, "homogeneousTarget": scaling},
    }


BROKEN = {
    "unknown field": config_map("u") | {"metadata": {"name": "u", "nam": "x"}},
    "no name": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}},
    "unknown kind": {"apiVersion": "v9", "kind": "Nothing", "metadata": {"name": "k"}},
    "bad name": config_map("Not_DNS"),
    "dangling": binding("dangling", "absent"),
    "secret": {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "s"},
        "data": {"t": "eA=="},
    },
}


def plan(
    documents: Iterable[Mapping[str, Any]],
    store: Store | None = None,
    manager: str = "cli",
    *,
    scaled: Mapping[ObjectKey, frozenset[str]] | None = None,
    **options: Any,
) -> list[PlannedObject]:
    given = [
        AppliedDocument(object=dict(one), file=f"f.yaml:{number}")
        for number, one in enumerate(documents)
    ]
    return plan_unit(
        given,
        manager,
        lookup=(store or {}).get,
        scaled=scaled or {},
        uids=(f"uid-{number}" for number in itertools.count()),
        now_ms=0,
        **options,
    )


def stored(planned: list[PlannedObject]) -> Store:
    return {
        key: StoredObject(body, number)
        for number, (key, body) in enumerate(writes(planned).items(), 1)
        if body is not None
    }


def refused(*documents: Mapping[str, Any], **options: Any) -> tuple[Problem, ...]:
    with pytest.raises(ProblemsError) as caught:
        plan(documents, **options)
    return caught.value.problems


GOOD = st.lists(st.sampled_from(["a", "b", "c", "d", "e"]), unique=True, max_size=5)


@given(GOOD, st.lists(st.sampled_from(sorted(BROKEN)), unique=True, min_size=1), st.randoms())
def test_one_defect_refuses_the_unit_and_each_is_told_at_its_document(
    good: list[str], broken: list[str], random: Any
) -> None:
    documents = [("", config_map(name)) for name in good]
    documents += [(name, BROKEN[name]) for name in broken]
    random.shuffle(documents)
    problems = refused(*(body for _, body in documents))
    places = {f"f.yaml:{number}" for number, (name, _) in enumerate(documents) if name}
    assert {problem.file for problem in problems} == places


@given(GOOD)
def test_a_good_unit_is_planned_in_its_order_and_again_changes_nothing(good: list[str]) -> None:
    documents = [config_map(name) for name in good]
    first = plan(documents)
    assert [item.key.name for item in first] == good
    assert {item.written.change for item in first} <= {Change.CREATED}
    assert len({item.written.object["metadata"]["uid"] for item in first}) == len(good)
    again = plan(documents, stored(first))
    assert writes(again) == {}
    assert all(item.written.change is Change.UNCHANGED for item in again)


@given(GOOD, st.sampled_from(["a", "b", "c"]))
def test_only_what_changes_is_written(good: list[str], changed: str) -> None:
    store = stored(plan(config_map(name) for name in good))
    texts = {name: "other" if name == changed else "x" for name in good}
    again = plan((config_map(name, text) for name, text in texts.items()), store)
    assert [key.name for key in writes(again)] == [name for name in good if name == changed]


def test_the_same_object_twice_is_told_with_both_places() -> None:
    (problem,) = refused(config_map("a"), config_map("b"), config_map("a", "other"))
    assert problem.code is ErrorCode.DUPLICATE_NAME
    assert (problem.file, problem.value) == ("f.yaml:2", "a")
    assert "f.yaml:0" in problem.message


def test_a_binding_needs_its_policy_in_the_unit_or_the_store() -> None:
    (problem,) = refused(binding())
    assert problem.code is ErrorCode.MISSING_REFERENCE
    assert (problem.field, problem.value) == ("spec.policyRef.name", "p")
    assert len(plan([binding(), policy()])) == 2, "in any order"
    assert len(plan([binding()], stored(plan([policy()])))) == 1


def test_a_policy_of_another_namespace_is_another_policy() -> None:
    elsewhere = policy() | {"metadata": {"name": "p", "namespace": "team"}}
    (problem,) = refused(binding(), elsewhere)
    assert problem.code is ErrorCode.MISSING_REFERENCE


def test_values_of_a_secret_are_refused_and_not_told() -> None:
    (problem,) = refused(BROKEN["secret"])
    assert problem.field == "data"
    assert problem.value is None
    assert "eA==" not in str(problem)


def test_a_conflict_of_one_document_refuses_the_others_too() -> None:
    store = stored(plan([config_map("a", "theirs")], manager="folder"))
    documents = [config_map("b"), config_map("a", "ours")]
    (problem,) = refused(*documents, store=store)
    assert problem.code is ErrorCode.FIELD_OWNED_BY_OTHER
    assert problem.file == "f.yaml:1"
    taken = plan(documents, store, force=True)
    assert [item.written.change for item in taken] == [Change.CREATED, Change.CONFIGURED]


def test_an_unmet_condition_of_one_document_refuses_the_others_too() -> None:
    document = AppliedDocument(
        object=config_map("a"), file="f.yaml:9", preconditions=Preconditions(uid="gone")
    )
    with pytest.raises(ProblemsError) as caught:
        plan_unit(
            [AppliedDocument(object=config_map("b")), document],
            "cli",
            lookup=lambda _: None,
            scaled={},
            uids=iter(["1", "2"]),
            now_ms=0,
        )
    (problem,) = caught.value.problems
    assert (problem.code, problem.file) == (ErrorCode.NOT_FOUND, "f.yaml:9")


@given(st.integers(0, 9), st.integers(0, 9), st.integers(0, 9))
def test_an_apply_keeps_the_replicas_that_a_policy_owns(
    first: int, decided: int, wanted: int
) -> None:
    store = stored(plan([serving(replicas=first)]))
    scaled_object = scale(store[SERVING], "", decided, "d").object
    store[SERVING] = StoredObject(scaled_object, 2)
    (owned,) = plan([serving(replicas=wanted)], store, scaled={SERVING: frozenset({""})})
    assert owned.written.object["spec"]["replicas"] == decided
    told = [(one.field, one.value, one.file) for one in owned.warnings]
    assert told == ([("spec.replicas", wanted, "f.yaml:0")] if wanted != decided else [])
    (free,) = plan([serving(replicas=wanted)], store)
    assert free.written.object["spec"]["replicas"] == wanted
    assert not free.warnings


def test_an_apply_keeps_the_replicas_of_a_role_that_a_policy_owns() -> None:
    store = stored(plan([serving()]))
    store[SERVING] = StoredObject(scale(store[SERVING], "main", 4, "d").object, 2)
    roles = {SERVING: frozenset({"main"})}
    (item,) = plan([serving(replicas=7, role_replicas=2)], store, scaled=roles)
    spec = item.written.object["spec"]
    assert spec["template"]["roles"][0]["replicas"] == 4
    (warning,) = item.warnings
    assert (warning.field, warning.value) == ("spec.template.roles[0].replicas", 2)
    assert spec["replicas"] == 7, "nobody else owns that one"


def test_what_is_doubtful_is_planned_with_a_warning_at_its_place() -> None:
    route = {
        "apiVersion": "networking.serving.volcano.sh/v1alpha1",
        "kind": "ModelRoute",
        "metadata": {"name": "r"},
        "spec": {"modelName": "m", "rules": []},
    }
    (item,) = plan([route])
    assert item.warnings
    assert all(warning.file == "f.yaml:0" for warning in item.warnings)


def test_a_unit_of_nothing_is_nothing() -> None:
    assert plan([]) == []
    assert writes([]) == {}
