"""Names of children: the reference's where they can be, others where they can't."""

from typing import Any

import pytest
from expansion_builders import backend, booster, open_model, service, worker
from expansion_store import Store, child
from hypothesis import given
from hypothesis import strategies as st

from inferbus_contracts.resources.names import is_dns1035_label, is_dns1123_label
from inferbus_spec_watcher.expansion.manifests import derived_name, part_name

NAMES = st.from_regex(r"[a-z0-9]([-a-z0-9.]{0,120}[a-z0-9])?", fullmatch=True).filter(
    lambda text: all(part and part.strip("-") == part for part in text.split("."))
)


@given(NAMES, st.integers(12, 63))
def test_a_derived_name_is_a_label_within_its_limit(text: str, limit: int) -> None:
    name = derived_name(text, limit)
    assert is_dns1035_label(name)
    assert len(name) <= limit
    assert (name == text) == (is_dns1035_label(text) and len(text) <= limit)


@given(NAMES, NAMES)
def test_different_texts_have_different_names(one: str, other: str) -> None:
    assert (derived_name(one, 20) == derived_name(other, 20)) == (one == other)


@given(NAMES, st.sampled_from(["-weights", "-model-downloader"]))
def test_a_part_is_a_label_that_keeps_its_suffix(text: str, suffix: str) -> None:
    name = part_name(text, suffix)
    assert is_dns1123_label(name)
    assert name.endswith(suffix)


def serving(name: str, **fields: Any) -> dict[str, Any]:
    store = Store(booster(backend(**fields), name=name))
    return child(store.expand("ModelBooster", name, "llm"), "ModelServing")


def test_names_that_fit_are_the_references_own() -> None:
    name = "a" * 44
    assert serving(name)["metadata"]["name"] == f"{name}-main"


@pytest.mark.parametrize("name", ["a" * 45, "a" * 63, "a" * 200, "qwen2.5", "7b"])
def test_every_pod_and_service_can_be_called_after_its_serving(name: str) -> None:
    found = serving(name, maxReplicas=9, workers=[worker(pods=4, replicas=20)])
    workload = found["metadata"]["name"]
    for suffix in ("-9-leader-19-3", "-0-leader-0-0"):
        assert is_dns1035_label(f"{workload}{suffix}")
    containers = found["spec"]["template"]["roles"][0]["entryTemplate"]["spec"]["initContainers"]
    assert all(is_dns1123_label(one["name"]) for one in containers)


def test_a_shortened_name_stays_when_replicas_get_more_digits() -> None:
    name = "a" * 60
    few, many = (serving(name, maxReplicas=number) for number in (9, 9999))
    assert few["metadata"]["name"] == many["metadata"]["name"]


def test_labels_of_long_names_match_between_pods_and_selector() -> None:
    store = Store(booster(backend(name="b" * 80), name="a" * 80))
    result = store.expand("ModelBooster", "a" * 80, "llm")
    entry = child(result, "ModelServing")["spec"]["template"]["roles"][0]["entryTemplate"]
    labels = entry["metadata"]["labels"] | {"modelserving.volcano.sh/entry": "true"}
    selector = child(result, "ModelServer")["spec"]["workloadSelector"]["matchLabels"]
    assert selector.items() <= labels.items()


@pytest.mark.parametrize("length", [58, 59, 63])
def test_leaders_of_a_service_with_a_long_name_can_be_named_and_found(length: int) -> None:
    name = "s" * length
    store = Store(open_model(), service(name))
    result = store.expand("Service", name)
    workload = child(result, "LeaderWorkerSet")["metadata"]["name"]
    assert len(f"{workload}-9999") <= 63
    assert (workload == name) == (length == 58)
    selector = child(result, "ModelServer")["spec"]["workloadSelector"]["matchLabels"]
    assert selector["leaderworkerset.sigs.k8s.io/name"] == workload
