"""Status of a Playground and of an inference Service, row by row (llmaz spec 4.1)."""

from typing import Any

import pytest
from expansion_builders import playground, service
from status_world import NOW_MS, World, available

from inferbus_contracts.conditions import condition
from inferbus_contracts.keys import ObjectKey

ABORTED = (
    condition("Expanded", False, "OpenModelMissing", "no model"),
    condition("Progressing", False, "AbortProcessing", "no model"),
)
KINDS = ("Playground", "Service")
PENDING = {"Playground": "Pending", "Service": "ServiceInProgress"}
SELECTOR = {"Playground": "selector", "Service": "hpaPodSelector"}


def workload(name: str = "x") -> dict[str, Any]:
    template = {"spec": {"containers": [{"name": "model-runner", "image": "x"}]}}
    return {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"leaderWorkerTemplate": {"size": 1, "workerTemplate": template}},
    }


class Pair(World):
    """A parent that was expanded, and the child that it watches."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind
        self.key = self.put(playground("x") if kind == "Playground" else service("x"))
        self.expanded(self.key)

    def add_child(self, status: dict[str, Any] | None = None, **options: Any) -> ObjectKey:
        child = service("x") if self.kind == "Playground" else workload()
        return self.put(child, status=status, owner=self.key, **options)

    @property
    def progress(self) -> dict[str, tuple[str, str]]:
        told = self.conditions(self.key)
        return {name: told[name] for name in ("Available", "Progressing") if name in told}


@pytest.fixture(params=KINDS)
def pair(request: pytest.FixtureRequest) -> Pair:
    return Pair(request.param)


def test_without_a_child_it_progresses(pair: Pair) -> None:
    assert pair.progress == {"Progressing": ("True", PENDING[pair.kind])}
    pair.add_child({"conditions": []})
    assert pair.progress == {"Progressing": ("True", PENDING[pair.kind])}


def test_it_is_available_with_its_child_and_then_progresses_no_longer(pair: Pair) -> None:
    pair.add_child(available())
    ready = f"{pair.kind}Ready"
    assert pair.progress == {"Available": ("True", ready), "Progressing": ("False", ready)}


def test_what_was_available_once_says_that_it_no_longer_is(pair: Pair) -> None:
    child = pair.add_child(available())
    assert pair.progress["Available"][0] == "True"
    pair.say(child, {"conditions": []})
    lost = {
        "Available": ("False", f"{pair.kind}NotReady"),
        "Progressing": ("True", f"{pair.kind}InProgress"),
    }
    assert pair.progress == lost
    del pair.objects[child]
    assert pair.progress == lost
    pair.add_child(available())
    assert pair.progress["Available"] == ("True", f"{pair.kind}Ready")


def test_a_child_that_has_not_seen_its_newest_spec_is_not_available(pair: Pair) -> None:
    pair.add_child(available(observed=1), generation=2)
    assert "Available" not in pair.progress


def test_a_child_whose_controller_tells_no_generation_is_taken_at_its_word(pair: Pair) -> None:
    pair.add_child(available(observed=None), generation=2)
    assert pair.progress["Available"][0] == "True"


def test_a_child_of_somebody_else_does_not_count(pair: Pair) -> None:
    pair.put(service("x") if pair.kind == "Playground" else workload(), status=available())
    assert "Available" not in pair.progress


def test_a_child_of_a_namesake_before_it_does_not_count(pair: Pair) -> None:
    pair.add_child(available())
    pair.put(playground("x") if pair.kind == "Playground" else service("x"), uid="another")
    pair.expanded(pair.key)
    assert "Available" not in pair.progress


def test_while_it_is_blocked_it_aborts_and_what_runs_stays_available(pair: Pair) -> None:
    pair.add_child(available())
    assert pair.progress["Available"][0] == "True"
    pair.expanded(pair.key, *ABORTED)
    assert pair.progress["Progressing"] == ("False", "AbortProcessing")
    assert pair.progress["Available"] == ("True", f"{pair.kind}Ready")
    assert pair.conditions(pair.key)["Expanded"] == ("False", "OpenModelMissing")


def test_when_nothing_blocks_any_more_it_progresses_again(pair: Pair) -> None:
    pair.expanded(pair.key, *ABORTED)
    assert pair.progress == {"Progressing": ("False", "AbortProcessing")}
    pair.expanded(pair.key)
    assert pair.progress == {"Progressing": ("True", PENDING[pair.kind])}


def test_replicas_and_selector_come_from_the_child(pair: Pair) -> None:
    assert (pair.status(pair.key)["replicas"], pair.status(pair.key)["selector"]) == (0, "")
    pair.add_child({"replicas": 3, SELECTOR[pair.kind]: "name=x"})
    status = pair.status(pair.key)
    assert (status["replicas"], status["selector"]) == (3, "name=x")


def test_before_it_was_expanded_it_is_accepted_and_no_more(pair: Pair) -> None:
    pair.verdicts.clear()
    pair.add_child(available())
    assert pair.conditions(pair.key).keys() == {"Accepted"}


def test_a_doubt_turns_false_when_it_is_no_longer_told(pair: Pair) -> None:
    pair.expanded(pair.key, condition("RouteTaken", True, "RouteTaken"))
    assert pair.conditions(pair.key)["RouteTaken"] == ("True", "RouteTaken")
    pair.expanded(pair.key)
    assert pair.conditions(pair.key)["RouteTaken"] == ("False", "Resolved")


def test_times_move_with_the_status_alone(pair: Pair) -> None:
    child = pair.add_child({"conditions": []})
    first = pair.status(pair.key, NOW_MS)
    assert pair.status(pair.key, NOW_MS + 60_000) == first
    pair.say(child, available())
    times = {
        one["type"]: one["lastTransitionTime"]
        for one in pair.status(pair.key, NOW_MS + 120_000)["conditions"]
    }
    before = {one["type"]: one["lastTransitionTime"] for one in first["conditions"]}
    assert times["Accepted"] == before["Accepted"]
    assert times["Progressing"] > before["Progressing"]
