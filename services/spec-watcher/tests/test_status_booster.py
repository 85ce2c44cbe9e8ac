"""Status of a ModelBooster, row by row (modelbooster spec 1.4, 3.3; ruling F5)."""

from typing import Any

from expansion_builders import backend, booster
from status_world import EXPANDED, NOW_MS, World, available

from inferbus_contracts.conditions import condition
from inferbus_contracts.keys import ObjectKey
from tests.support.platform import model_manifests

ABNORMAL = condition("Failed", True, "ModelAbnormal", "why")
A, B = (ObjectKey("ModelServing", "llm", f"chat-{name}") for name in "ab")


def workload(key: ObjectKey) -> dict[str, Any]:
    serving, _, _ = model_manifests(key.name)
    return {**serving, "metadata": {"name": key.name, "namespace": key.namespace}}


def with_two_backends() -> tuple[World, ObjectKey]:
    world = World()
    key = world.put(booster(backend(name="a"), backend(name="b")))
    world.expanded(key)
    return world, key


def test_before_it_was_expanded_it_is_accepted_and_no_more() -> None:
    world = World()
    key = world.put(booster())
    assert world.conditions(key) == {"Accepted": ("True", "Accepted")}
    assert "observedGeneration" not in world.status(key)


def test_a_verdict_on_a_namesake_before_it_says_nothing_of_it() -> None:
    world = World()
    key = world.put(booster())
    world.expanded(key, EXPANDED, ABNORMAL, uid="the one before")
    assert world.conditions(key).keys() == {"Accepted"}


def test_it_is_initialised_and_processing_until_every_workload_is_available() -> None:
    world, key = with_two_backends()
    assert world.conditions(key) == {
        "Accepted": ("True", "Accepted"),
        "Active": ("False", "ModelProcessing"),
        "Expanded": ("True", "ChildrenRendered"),
        "Initialized": ("True", "ModelCreating"),
    }
    world.put(workload(A), status=available())
    world.put(workload(B), status={"conditions": []})
    active = next(one for one in world.status(key)["conditions"] if one["type"] == "Active")
    assert (active["status"], active["message"]) == ("False", "not ready: b")
    world.say(B, available())
    assert world.conditions(key)["Active"] == ("True", "ModelAvailable")


def test_a_workload_that_has_not_seen_its_newest_spec_is_not_available() -> None:
    world, key = with_two_backends()
    world.put(workload(A), status=available())
    world.put(workload(B), status=available(observed=1), generation=2)
    assert world.conditions(key)["Active"] == ("False", "ModelProcessing")
    world.say(B, available(observed=2))
    assert world.conditions(key)["Active"] == ("True", "ModelAvailable")


def test_active_does_not_flap_while_nothing_changes() -> None:
    """The reference sets it False at the start of every pass."""
    world, key = with_two_backends()
    for one in (A, B):
        world.put(workload(one), status=available())
    first = world.status(key, NOW_MS)
    assert world.status(key, NOW_MS + 60_000) == first


def test_backends_are_told_by_their_own_names_with_what_runs() -> None:
    world, key = with_two_backends()
    world.put(workload(A), status=available(replicas=5, availableReplicas=3))
    statuses = [{"name": "a", "replicas": 3}, {"name": "b", "replicas": 0}]
    assert world.status(key)["backendStatuses"] == statuses


def test_failed_appears_with_the_failure_and_turns_false_after_it() -> None:
    world, key = with_two_backends()
    assert "Failed" not in world.conditions(key)
    world.expanded(key, condition("Expanded", False, "Invalid", "why"), ABNORMAL)
    told = world.conditions(key)
    assert told["Failed"] == ("True", "ModelAbnormal")
    assert told["Expanded"] == ("False", "Invalid")
    world.expanded(key)
    assert world.conditions(key)["Failed"] == ("False", "Resolved")


def test_what_is_observed_is_the_generation_that_was_expanded() -> None:
    world, key = with_two_backends()
    world.put(booster(backend(name="a"), backend(name="b")), generation=2)
    assert world.status(key)["observedGeneration"] == 1
    world.expanded(key)
    status = world.status(key)
    assert status["observedGeneration"] == 2
    assert {one["observedGeneration"] for one in status["conditions"]} == {2}


def test_one_that_an_older_release_let_in_says_that_it_is_not_accepted() -> None:
    world, key = with_two_backends()
    world.objects[key].object["spec"]["backends"][0]["type"] = "no such engine"
    told = world.conditions(key)
    assert told["Accepted"] == ("False", "Invalid")
    assert told["Active"] == ("False", "ModelProcessing")
