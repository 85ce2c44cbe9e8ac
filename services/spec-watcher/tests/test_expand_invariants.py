"""What holds for every expansion: same bytes, admitted children, and no hidden dependency."""

import copy
from typing import Any

import pytest
from expansion_builders import (
    backend,
    booster,
    disaggregated,
    flavor,
    open_model,
    playground,
    service,
    worker,
)
from expansion_store import Document, Store
from hypothesis import given
from hypothesis import strategies as st

from inferbus_contracts.admission import admit
from inferbus_contracts.canonical import canonical_json
from inferbus_contracts.errors import ProblemsError
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.resources.kinds import key_of
from inferbus_spec_watcher.expansion import ExpansionSettings, expand

POLICY = {"metrics": [{"metricName": "kthena:num_requests_waiting", "targetValue": 10}]}
TRIGGER = {"hpa": {"metrics": [{"type": "Resource", "resource": {"name": "cpu"}}]}}
ADAPTERS = [{"name": "sql", "artifactURL": "s3://bucket/sql"}]

PARENTS: dict[str, Document] = {
    "two backends": booster(
        backend(name="a", loraAdapters=ADAPTERS, env=[{"name": "B", "value": "1"}]),
        backend(name="b", type="SGLang", workers=[worker(pods=3, config={"b": 1, "a": [1]})]),
        client_name="gpt",
    ),
    "disaggregated": booster(disaggregated({"x": 1}, {"y": {"z": None}}, cacheURI="pvc://c")),
    "mix": booster(
        backend(maxReplicas=3, scalingCost=1),
        backend(name="m", type="MindIE", scalingCost=2),
        autoscalingPolicy=POLICY,
    ),
    "playground": playground(
        config={"envs": [{"name": "B", "value": "1"}, {"name": "A", "value": "2"}]},
        elasticConfig={"scaleTrigger": TRIGGER},
    ),
    "service": service(
        modelClaims={"models": [{"name": "opt"}], "inferenceFlavors": ["t4"]},
        annotations={"inferbus.dev/tolerations": '[{"key": "x", "operator": "Exists"}]'},
    ),
}
MODEL = open_model(inferenceConfig={"flavors": [flavor("t4", nodeSelector={"gpu": "t4"})]})


def stored(name: str) -> tuple[Store, Document]:
    store = Store(MODEL, PARENTS[name])
    return store, store.objects[admit(PARENTS[name]).key]


@pytest.mark.parametrize("name", PARENTS)
def test_a_hundred_expansions_of_one_input_are_identical(name: str) -> None:
    store, parent = stored(name)
    found = set()
    for _ in range(100):
        result = expand(copy.deepcopy(parent), store.objects.get, store.settings)
        assert result is not None
        conditions = [one.to_dict() for one in result.conditions]
        found.add(canonical_json([list(result.children), conditions, sorted(result.waits_for)]))
    assert len(found) == 1


@pytest.mark.parametrize("name", PARENTS)
def test_every_child_is_admitted_as_it_is_and_without_a_doubt(name: str) -> None:
    store, parent = stored(name)
    result = expand(parent, store.objects.get, store.settings)
    assert result is not None
    assert result.children
    for child in result.children:
        admitted = admit(child)
        assert admitted.object == child
        assert admitted.warnings == ()


@pytest.mark.parametrize("name", PARENTS)
def test_the_input_is_left_as_it_was_and_shared_with_nothing(name: str) -> None:
    store, parent = stored(name)
    before = copy.deepcopy(store.objects)
    result = expand(parent, store.objects.get, store.settings)
    assert result is not None
    for child in result.children:
        _overwrite(child)
    assert store.objects == before
    again = expand(parent, store.objects.get, store.settings)
    assert again is not None
    assert all("overwritten" not in str(child) for child in again.children)


def _overwrite(value: Any) -> None:
    for item in value.values() if isinstance(value, dict) else value:
        if isinstance(item, dict | list):
            _overwrite(item)
    if isinstance(value, dict):
        value["overwritten"] = True
    else:
        value.append("overwritten")


@pytest.mark.parametrize("name", PARENTS)
def test_children_have_names_of_their_own(name: str) -> None:
    store, parent = stored(name)
    result = expand(parent, store.objects.get, store.settings)
    assert result is not None
    keys = [key_of(child) for child in result.children]
    assert len(set(keys)) == len(keys)
    assert all(len(key.name) <= 63 for key in keys)
    assert set(keys) <= result.waits_for


@pytest.mark.parametrize("name", PARENTS)
def test_only_what_is_waited_for_matters(name: str) -> None:
    store, parent = stored(name)
    result = expand(parent, store.objects.get, store.settings)
    assert result is not None
    known = {key: store.objects[key] for key in result.waits_for & store.objects.keys()}
    assert expand(parent, known.get, store.settings) == result


@pytest.mark.parametrize("kind", ["OpenModel", "Pod"])
def test_other_kinds_have_no_children(kind: str) -> None:
    document = {
        "OpenModel": open_model(),
        "Pod": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {}},
    }[kind]
    assert expand(document, {}.get, ExpansionSettings()) is None


WORDS = st.from_regex(r"[a-z]([-a-z0-9]{0,20}[a-z0-9])?", fullmatch=True)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=6,
)
CONFIGS = st.dictionaries(WORDS.filter(lambda word: word != "port"), VALUES, max_size=5)
JUNK = st.one_of(
    VALUES,
    st.lists(st.fixed_dictionaries({"name": st.sampled_from(["a", "model-runner"])}), max_size=2),
)
PLACES = st.sampled_from(
    ["containers", "initContainers", "volumes", "tolerations", "affinity", "schedulerName"]
)
RUNNER_PLACES = st.sampled_from(
    ["image", "command", "args", "env", "ports", "volumeMounts", "resources"]
)
TYPES = st.sampled_from(["vLLM", "SGLang", "MindIE"])


@given(WORDS, WORDS, TYPES, CONFIGS, st.integers(1, 9), st.integers(0, 20000))
def test_whatever_a_backend_holds_its_children_are_admitted(
    name: str, backend_name: str, kind: str, config: Document, pods: int, most: int
) -> None:
    if kind == "MindIE":
        config = {key: value for key, value in config.items() if key != "command"}
    one = backend(
        name=backend_name,
        type=kind,
        minReplicas=0,
        maxReplicas=max(1, most),
        workers=[worker(config=config, pods=pods)],
    )
    store = Store(booster(one, name=name))
    result = store.expand("ModelBooster", name, "llm")
    assert not result.blocked
    keys = [key_of(child) for child in result.children]
    assert keys[-1] == ObjectKey("ModelRoute", "llm", name)


@given(PLACES, JUNK, RUNNER_PLACES, JUNK)
def test_a_pod_that_makes_no_sense_is_told_or_left_alone(
    place: str, junk: Any, runner_place: str, runner_junk: Any
) -> None:
    document = service(runner={runner_place: runner_junk}, pod={place: junk})
    try:
        store = Store(MODEL, document)
    except ProblemsError:
        return
    result = store.expand("Service", "svc")
    assert result.blocked == (not result.children)
    if result.blocked:
        assert "spec.workloadTemplate.workerTemplate.spec." in result.conditions[0].message


@pytest.mark.parametrize("amount", ["many", [], {"a": 1}])
def test_amounts_that_are_none_are_told(amount: Any) -> None:
    resources = {"limits": {"nvidia.com/gpu": amount}}
    document = booster(backend(workers=[worker(pods=2, resources=resources)]))
    result = Store(document).expand("ModelBooster", "chat", "llm")
    assert result.blocked
    field = "spec.backends[0].workers[0].resources.limits"
    assert field in result.conditions[0].message
