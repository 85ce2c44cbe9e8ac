"""Rolling updates by role (modelserving spec 3.8; T44, T58 to T64, T81)."""

from typing import Any

import pytest
from workload_builders import role, serving
from workload_world import World

from inferbus_workload_reconciler.actions import ChildKind


def by_role(groups: int, *roles: dict[str, Any]) -> dict[str, Any]:
    return serving(groups, list(roles), by_role=True)


def bad_images(world: World) -> None:
    world.unready = lambda pod: pod["spec"]["containers"][0]["image"] == "bad"


def images(world: World, group: int = 0, name: str = "prefill", count: int = 4) -> list[str]:
    return [world.image(f"x-{group}-{name}-{ordinal}-0") for ordinal in range(count)]


def test_ms_t59_a_bad_image_stops_after_the_roles_max_unavailable() -> None:
    world = World(by_role(1, role(replicas=4, maxUnavailable=2), role("decode")))
    world.settle()
    decode = world.uid("x-0-decode-0-0")
    bad_images(world)
    world.apply(by_role(1, role(replicas=4, maxUnavailable=2, image="bad"), role("decode")))
    world.settle()
    assert images(world) == ["a", "a", "bad", "bad"]
    assert world.uid("x-0-decode-0-0") == decode


def test_ms_t60_replicas_below_the_role_partition_stay_old() -> None:
    old = role(replicas=4, maxUnavailable=4, partition=2)
    world = World(by_role(1, old))
    world.settle()
    current = world.status["currentRevision"]
    world.apply(by_role(1, role(replicas=4, maxUnavailable=4, partition=2, image="b")))
    world.settle()
    assert images(world) == ["a", "a", "b", "b"]
    assert world.status["currentRevision"] == current != world.status["updateRevision"]
    assert world.counts() == (1, 1, 0, 1)


def test_ms_t61_a_lost_protected_replica_comes_back_as_it_was() -> None:
    world = World(by_role(1, role(replicas=3, maxUnavailable=3, partition=1)))
    world.settle()
    world.apply(by_role(1, role(replicas=3, maxUnavailable=3, partition=1, image="b")))
    world.settle()
    old, new = world.status["currentRevision"], world.status["updateRevision"]
    uid = world.uid("x-0-prefill-0-0")
    world.delete_pod("x-0-prefill-0-0")
    world.settle()
    assert images(world, count=3) == ["a", "b", "b"]
    labels = [world.label(f"x-0-prefill-{ordinal}-0", "revision") for ordinal in range(3)]
    assert labels == [old, new, new]
    assert world.uid("x-0-prefill-0-0") != uid


def test_ms_t62_protected_replicas_survive_a_shrink_however_cheap_they_are() -> None:
    world = World(by_role(1, role(replicas=5, maxUnavailable=5, partition=3)))
    world.settle()
    world.apply(by_role(1, role(replicas=5, maxUnavailable=5, partition=3, image="b")))
    world.settle()
    for ordinal in range(5):
        world.cost(f"x-0-prefill-{ordinal}-0", 0 if ordinal < 3 else 10_000 + ordinal)
    world.apply(by_role(1, role(replicas=3, maxUnavailable=3, partition=3, image="b")))
    world.settle()
    assert images(world, count=3) == ["a", "a", "a"]
    assert len(world.pod_names()) == 3


def test_ms_t81_a_role_update_leaves_the_other_roles_alone() -> None:
    world = World(by_role(2, role(replicas=2), role("decode")))
    world.settle()
    decodes = [world.uid(f"x-{group}-decode-0-0") for group in (0, 1)]
    world.apply(by_role(2, role(replicas=2, image="b"), role("decode")))
    world.settle()
    assert images(world, 0, count=2) + images(world, 1, count=2) == ["b"] * 4
    assert [world.uid(f"x-{group}-decode-0-0") for group in (0, 1)] == decodes
    assert world.counts() == (2, 2, 2, 2)
    assert world.status["currentRevision"] == world.status["updateRevision"]


def test_ms_t58_replicas_of_a_dropped_role_go_at_once() -> None:
    world = World(by_role(1, role(), role("decode", replicas=2)))
    world.settle()
    world.delete_pod("x-0-decode-1-0")
    world.apply(by_role(1, role()))
    planned = world.reconcile()
    assert [action.name for action in planned.actions if action.child is ChildKind.POD] == [
        "x-0-decode-0-0"
    ]
    world.settle()
    assert world.pod_names() == ["x-0-prefill-0-0"]


def test_a_new_role_is_created_at_once() -> None:
    world = World(by_role(1, role()))
    world.settle()
    uid = world.uid("x-0-prefill-0-0")
    world.apply(by_role(1, role(), role("decode")))
    world.settle()
    assert world.pod_names() == ["x-0-decode-0-0", "x-0-prefill-0-0"]
    assert world.uid("x-0-prefill-0-0") == uid


def test_ms_t64_a_replica_of_unknown_content_is_left_alone() -> None:
    """Mutant: take `UNKNOWN` for outdated in the role update."""
    world = World(by_role(1, role(replicas=2)))
    world.settle()
    labels = world.pod("x-0-prefill-1-0")["metadata"]["labels"]
    labels["modelserving.volcano.sh/revision"] = "lost"
    labels["modelserving.volcano.sh/role-template-hash"] = "lost"
    world.apply(by_role(1, role(replicas=2, image="b")))
    world.settle()
    assert images(world, count=2) == ["b", "a"]
    assert world.true_conditions() == ["Available", "RevisionSnapshotLost"]


def stuck(*ordinals: int) -> World:
    """Four old replicas of which some don't run."""
    world = World(by_role(1, role(replicas=4, maxUnavailable=2)))
    world.settle()
    for ordinal in ordinals:
        world.unready_pod(f"x-0-prefill-{ordinal}-0")
    return world


def test_replicas_that_do_not_run_are_replaced_first() -> None:
    world = stuck(1, 3)
    world.apply(by_role(1, role(replicas=4, maxUnavailable=2, image="b")))
    world.reconcile()
    assert world.live_names() == ["x-0-prefill-0-0", "x-0-prefill-2-0"]


@pytest.mark.parametrize(
    ("deleting", "starting", "replaced"), [((), (2,), ["x-0-prefill-1-0"]), ((2,), (3,), [])]
)
def test_replicas_under_way_use_up_the_budget(
    deleting: tuple[int, ...], starting: tuple[int, ...], replaced: list[str]
) -> None:
    world = World(by_role(1, role(replicas=4, maxUnavailable=2)))
    world.settle()
    world.unready = lambda pod: True
    world.apply(by_role(1, role(replicas=4, maxUnavailable=2, image="b")))
    world.reconcile()
    world.finish_deletions()
    world.reconcile()
    for ordinal in {2, 3} - set(starting) - set(deleting):
        world.start(f"x-0-prefill-{ordinal}-0")
    for ordinal in deleting:
        world.delete_pod(f"x-0-prefill-{ordinal}-0")
    before = set(world.live_names())
    world.reconcile()
    assert sorted(before - set(world.live_names())) == replaced


def test_without_a_limit_all_outdated_replicas_go_at_once() -> None:
    world = World(by_role(1, role(replicas=3)))
    world.settle()
    world.apply(by_role(1, role(replicas=3, image="b")))
    world.reconcile()
    assert world.live_names() == []


def test_ms_d25_a_role_without_replicas_can_be_updated() -> None:
    world = World(by_role(1, role(), role("decode", replicas=0, maxUnavailable=1)))
    world.settle()
    world.apply(by_role(1, role(), role("decode", replicas=0, maxUnavailable=1, image="b")))
    world.settle()
    assert world.counts() == (1, 1, 1, 1)
    assert world.status["currentRevision"] == world.status["updateRevision"]


def test_ms_d17_a_broken_role_does_not_hold_up_another() -> None:
    """Mutant: replace only in groups that run in `decide_roles`."""
    world = World(by_role(1, role(replicas=3, maxUnavailable=1), role("decode")))
    world.settle()
    bad_images(world)
    world.apply(
        by_role(1, role(replicas=3, maxUnavailable=1, image="b"), role("decode", image="bad"))
    )
    world.settle()
    assert images(world, count=3) == ["b", "b", "b"]


def test_ms_d12_a_group_does_not_count_as_available_while_its_roles_are_replaced() -> None:
    world = World(by_role(1, role(replicas=2, maxUnavailable=1)))
    world.settle()
    world.apply(by_role(1, role(replicas=2, maxUnavailable=1, image="b")))
    world.reconcile()
    assert world.status["availableReplicas"] == 0
    assert world.true_conditions() == ["UpdateInProgress"]


def test_ms_d4_a_half_updated_group_is_recognised_after_a_restart() -> None:
    """Mutant: judge a group by one of its replicas in `_is_updated`."""
    world = World(by_role(1, role(replicas=2, maxUnavailable=1)))
    world.settle()
    world.unready = lambda pod: world.image(pod["metadata"]["name"]) == "b"
    world.apply(by_role(1, role(replicas=2, maxUnavailable=1, image="b")))
    world.settle()
    world.memory = {}
    world.reconcile()
    assert images(world, count=2) == ["a", "b"]
    assert world.status["updatedReplicas"] == 0
    world.unready = lambda pod: False
    world.settle()
    assert images(world, count=2) == ["b", "b"]
    assert world.counts() == (1, 1, 1, 1)


def test_after_a_role_update_a_group_update_finds_nothing_to_do() -> None:
    world = World(by_role(2, role(), role("decode")))
    world.settle()
    world.apply(by_role(2, role(image="b"), role("decode")))
    world.settle()
    uids = {world.uid(name) for name in world.pod_names()}
    world.apply(serving(2, [role(image="b"), role("decode")]))
    world.settle()
    assert {world.uid(name) for name in world.pod_names()} == uids


def test_a_group_update_finishes_what_a_role_update_began() -> None:
    world = World(by_role(1, role(replicas=2, maxUnavailable=1)))
    world.settle()
    bad_images(world)
    world.apply(by_role(1, role(replicas=2, maxUnavailable=1, image="bad")))
    world.settle()
    world.apply(serving(1, [role(replicas=2, image="c")]))
    world.settle()
    assert images(world, count=2) == ["c", "c"]
