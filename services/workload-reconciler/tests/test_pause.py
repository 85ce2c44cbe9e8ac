"""Updates that are paused, overdue, or taken back (defect MS_D42)."""

from typing import Any

import pytest
from workload_builders import role, serving
from workload_world import World

from inferbus_contracts.resources.annotations import PAUSED, PROGRESS_DEADLINE

PAUSE = {PAUSED: "true"}
BY_ROLE = {"by_role": True}
BY_GROUP: dict[str, Any] = {}


def settled(**fields: Any) -> World:
    world = World(serving(3, [role(replicas=2)], **fields))
    world.settle()
    return world


@pytest.mark.parametrize("fields", [BY_GROUP, BY_ROLE], ids=["by group", "by role"])
def test_ms_d42_a_paused_workload_does_not_move_on(fields: dict[str, Any]) -> None:
    world = settled(**fields)
    world.apply(serving(3, [role(replicas=2, image="b")], annotations=PAUSE, **fields))
    world.settle()
    assert {world.image(name) for name in world.pod_names()} == {"a"}
    assert world.condition("Paused")["status"] == "True"
    assert "3 groups" in world.condition("Paused")["message"]
    assert world.status["updateRevision"] != world.status["currentRevision"]
    world.apply(serving(3, [role(replicas=2, image="b")], **fields))
    world.settle()
    assert {world.image(name) for name in world.pod_names()} == {"b"}
    assert world.condition("Paused")["status"] == "False"


@pytest.mark.parametrize("fields", [BY_GROUP, BY_ROLE], ids=["by group", "by role"])
def test_ms_d42_scaling_and_recovery_go_on_while_paused(fields: dict[str, Any]) -> None:
    world = settled(**fields)
    world.apply(serving(4, [role(replicas=2, image="b")], annotations=PAUSE, **fields))
    world.settle()
    assert len(world.pod_names()) == 8
    world.fail("x-1-prefill-0-0")
    world.settle()
    assert len(world.pod_names()) == 8
    assert {world.image(name) for name in world.pod_names()} == {"a"}


def test_an_update_is_paused_where_it_stands() -> None:
    world = settled()
    world.apply(serving(3, [role(replicas=2, image="b")]))
    world.reconcile()
    world.finish_deletions()
    world.reconcile()
    world.apply(serving(3, [role(replicas=2, image="b")], annotations=PAUSE))
    world.settle()
    images = [world.image(f"x-{group}-prefill-0-0") for group in range(3)]
    assert images == ["a", "a", "b"]
    assert world.true_conditions() == ["Available", "Paused"]


def test_a_new_role_waits_while_paused() -> None:
    world = settled(**BY_ROLE)
    roles = [role(replicas=2), role("decode")]
    world.apply(serving(3, roles, annotations=PAUSE, **BY_ROLE))
    world.settle()
    assert world.replica_ids() == {"prefill-0", "prefill-1"}


def test_a_pause_without_an_update_changes_nothing() -> None:
    world = settled()
    before = world.counts()
    world.apply(serving(3, [role(replicas=2)], annotations=PAUSE))
    world.settle()
    assert world.counts() == before


DEADLINE = {PROGRESS_DEADLINE: "10m"}


def stuck() -> World:
    """An update whose first group never becomes ready."""
    world = settled(annotations=DEADLINE)
    world.unready = lambda pod: pod["spec"]["containers"][0]["image"] == "b"
    world.apply(serving(3, [role(replicas=2, image="b")], annotations=DEADLINE))
    for _ in range(4):
        world.reconcile()
        world.finish_deletions()
    return world


def test_ms_d42_an_update_that_comes_no_closer_is_told() -> None:
    world = stuck()
    planned = world.plan()
    assert planned.next_check_ms == world.now_ms + 600_000
    assert "Stalled" not in world.true_conditions()
    world.now_ms += 599_999
    world.reconcile()
    assert "Stalled" not in world.true_conditions()
    world.now_ms += 1
    world.reconcile()
    assert world.condition("Stalled")["reason"] == "ProgressDeadlineExceeded"
    assert world.true_conditions() == ["Stalled", "UpdateInProgress"]


def test_a_pod_that_comes_and_goes_does_not_put_the_deadline_off() -> None:
    world = stuck()
    for _ in range(11):
        world.start("x-2-prefill-0-0")
        world.reconcile()
        world.unready_pod("x-2-prefill-0-0")
        world.reconcile()
        world.now_ms += 60_000
    world.reconcile()
    assert "Stalled" in world.true_conditions()


def test_ms_d42_the_templates_before_are_the_way_back() -> None:
    """The revision that ran before is the newest again, and what has it stays."""
    world = settled(annotations=DEADLINE)
    first, kept = world.status["updateRevision"], world.uid("x-0-prefill-0-0")
    world.unready = lambda pod: pod["spec"]["containers"][0]["image"] == "b"
    world.apply(serving(3, [role(replicas=2, image="b")], annotations=DEADLINE))
    world.reconcile()
    world.apply(serving(3, [role(replicas=2)], annotations=DEADLINE))
    world.settle()
    assert world.status["updateRevision"] == first
    assert world.uid("x-0-prefill-0-0") == kept
    assert world.true_conditions() == ["Available"]
    assert len(world.revisions()) == 2


def test_nothing_is_measured_at_rest_or_without_a_deadline() -> None:
    world = settled(annotations=DEADLINE)
    assert "progress" not in world.memory
    assert world.plan().next_check_ms is None
    other = World(serving(1))
    other.reconcile()
    assert "progress" not in other.memory
