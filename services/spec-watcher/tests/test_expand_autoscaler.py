"""The HorizontalPodAutoscaler of a Playground (llmaz spec 5.1, 8; rulings F9 to F12)."""

from typing import Any

import pytest
from expansion_builders import open_model, playground, runtime
from expansion_store import Document, Store, child, conditions, kinds

from inferbus_spec_watcher.expansion import Expansion

CPU_TRIGGER = {"hpa": {"metrics": [{"type": "Resource", "resource": {"name": "cpu"}}]}}
OTHER_TRIGGER = {
    "hpa": {
        "metrics": [{"type": "Resource", "resource": {"name": "memory"}}],
        "behavior": {"scaleDown": {"stabilizationWindowSeconds": 5}},
    }
}


def expanded(document: Document, *others: Document) -> Expansion:
    return Store(document, open_model(), *others).expand("Playground", "play")


def elastic(**fields: Any) -> Document:
    return {"minReplicas": 2, "maxReplicas": 5, **fields}


def triggered(name: str, trigger: Document) -> Document:
    return {"name": name, "args": [], "scaleTrigger": trigger}


def test_lz_t43_the_playgrounds_own_trigger_counts_first() -> None:
    engine = runtime(recommendedConfigs=[triggered("default", OTHER_TRIGGER)])
    config = {"backendName": "engine"}
    bounds = elastic(scaleTrigger=CPU_TRIGGER)
    own = child(
        expanded(playground(elasticConfig=bounds, config=config), engine),
        "HorizontalPodAutoscaler",
    )
    assert own["spec"] == {
        "scaleTargetRef": {
            "apiVersion": "inference.llmaz.io/v1alpha1",
            "kind": "Playground",
            "name": "play",
        },
        "minReplicas": 2,
        "maxReplicas": 5,
        **CPU_TRIGGER["hpa"],
    }
    recommended = expanded(playground(elasticConfig=elastic(), config=config), engine)
    spec = child(recommended, "HorizontalPodAutoscaler")["spec"]
    assert spec.items() >= OTHER_TRIGGER["hpa"].items()


def test_lz_t59_the_trigger_is_that_of_the_chosen_configuration() -> None:
    configs = [triggered("default", CPU_TRIGGER), triggered("fuz", OTHER_TRIGGER)]
    engine = runtime(recommendedConfigs=configs)
    config = {"backendName": "engine", "configName": "fuz"}
    result = expanded(playground(elasticConfig=elastic(), config=config), engine)
    metrics = child(result, "HorizontalPodAutoscaler")["spec"]["metrics"]
    assert metrics == OTHER_TRIGGER["hpa"]["metrics"]


def test_lz_t58_without_bounds_there_is_no_autoscaler() -> None:
    engine = runtime(recommendedConfigs=[triggered("default", CPU_TRIGGER)])
    result = expanded(playground(config={"backendName": "engine"}), engine)
    assert kinds(result) == ["Service"]


@pytest.mark.parametrize(("least", "most"), [(2, 7), (9, 9)])
def test_an_autoscaler_without_a_limit_gets_the_settings(least: int, most: int) -> None:
    bounds = {"minReplicas": least, "scaleTrigger": CPU_TRIGGER}
    store = Store(open_model(), playground(elasticConfig=bounds), hpa_max_cap=7)
    spec = child(store.expand("Playground", "play"), "HorizontalPodAutoscaler")["spec"]
    assert spec["maxReplicas"] == most


def test_never_two_scalers() -> None:
    annotations = {"inferbus.dev/scaler": "inferbus"}
    bounds = elastic(scaleTrigger=CPU_TRIGGER)
    result = expanded(playground(elasticConfig=bounds, annotations=annotations))
    assert kinds(result) == ["Service"]
    assert conditions(result)["ScalingInert"] == ("True", "ScalingInert")


@pytest.mark.parametrize(("scaler", "told"), [(None, True), ("hpa", True), ("inferbus", False)])
def test_bounds_that_nothing_moves_between_are_told(scaler: str | None, told: bool) -> None:
    annotations = {"inferbus.dev/scaler": scaler} if scaler else None
    result = expanded(playground(elasticConfig=elastic(), annotations=annotations))
    assert kinds(result) == ["Service"]
    assert ("ScalingInert" in conditions(result)) is told
