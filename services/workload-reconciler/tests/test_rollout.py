"""Rolling updates of whole groups (modelserving spec 3.7, 3.9; T2, T28 to T36, T39, T82, T83)."""

from typing import Any

import pytest
from workload_builders import role, serving
from workload_world import World, fleet

from inferbus_workload_reconciler.policy_budget import (
    replacement_budget,
    resolve,
    unavailable_limit,
)
from inferbus_workload_reconciler.policy_groups import Candidate, replacement_order

Steps = list[tuple[str, str, tuple[int, int, int, int], str]]


def rolled(groups: int, image: str = "b", **knobs: Any) -> World:
    """A settled fleet of image `a` that is told to run another image."""
    world = World(serving(groups, rollout=knobs))
    world.settle()
    world.history.clear()
    world.apply(serving(groups, [role(image=image)], rollout=knobs))
    world.reconcile()
    return world


def picture(world: World, groups: int) -> str:
    """`AR` old and running, `AD` old and deleting, `BC` new and starting, `--` gone."""
    states = []
    for ordinal in range(groups):
        name = f"x-{ordinal}-prefill-0-0"
        if name not in world.pod_names():
            states.append("--")
            continue
        ready = world.pod(name)["status"]["phase"] == "Running"
        state = "D" if world.deleting(name) else "R" if ready else "C"
        states.append(world.image(name).upper() + state)
    return " ".join(states)


def happens(world: World, event: str) -> None:
    """`g3 gone` or `g3 ready`, and the reconciler looks."""
    group, what = event.split()
    name = f"x-{group[1:]}-prefill-0-0"
    if what == "gone":
        world.finish_deletions(name)
    else:
        world.start(name)
    world.reconcile()


def walk(world: World, groups: int, steps: Steps) -> None:
    """Each step: what happens, the fleet then, its counts, and the condition that is True."""
    old, new = world.status["currentRevision"], world.status["updateRevision"]
    for event, expected, counts, condition in steps:
        if event:
            happens(world, event)
        assert (event, picture(world, groups)) == (event, expected)
        assert (event, world.counts()) == (event, counts)
        assert (event, world.true_conditions()) == (event, [condition])
        assert world.status["updateRevision"] == new
        if condition != "Available":
            assert world.status["currentRevision"] == old


UPDATING, DONE = "UpdateInProgress", "Available"


@pytest.mark.parametrize("unavailable", [1, "25%"])
def test_example_3_7_1_one_group_at_a_time(unavailable: int | str) -> None:
    world = rolled(4, maxUnavailable=unavailable)
    walk(
        world,
        4,
        [
            ("", "AR AR AR AD", (4, 3, 0, 3), UPDATING),
            ("g3 gone", "AR AR AR BC", (4, 3, 1, 3), UPDATING),
            ("g3 ready", "AR AR AD BR", (4, 3, 1, 2), UPDATING),
            ("g2 gone", "AR AR BC BR", (4, 3, 2, 2), UPDATING),
            ("g2 ready", "AR AD BR BR", (4, 3, 2, 1), UPDATING),
            ("g1 gone", "AR BC BR BR", (4, 3, 3, 1), UPDATING),
            ("g1 ready", "AD BR BR BR", (4, 3, 3, 0), UPDATING),
            ("g0 gone", "BC BR BR BR", (4, 3, 4, 0), UPDATING),
            ("g0 ready", "BR BR BR BR", (4, 4, 4, 4), DONE),
        ],
    )
    assert world.status["currentRevision"] == world.status["updateRevision"]


def test_example_3_7_2_a_sliding_window_of_two() -> None:
    walk(
        rolled(4, maxUnavailable=2),
        4,
        [
            ("", "AR AR AD AD", (4, 2, 0, 2), UPDATING),
            ("g3 gone", "AR AR AD BC", (4, 2, 1, 2), UPDATING),
            ("g2 gone", "AR AR BC BC", (4, 2, 2, 2), UPDATING),
            ("g3 ready", "AR AD BC BR", (4, 2, 2, 1), UPDATING),
            ("g1 gone", "AR BC BC BR", (4, 2, 3, 1), UPDATING),
            ("g2 ready", "AD BC BR BR", (4, 2, 3, 0), UPDATING),
            ("g0 gone", "BC BC BR BR", (4, 2, 4, 0), UPDATING),
            ("g1 ready", "BC BR BR BR", (4, 3, 4, 0), UPDATING),
            ("g0 ready", "BR BR BR BR", (4, 4, 4, 4), DONE),
        ],
    )


def test_example_3_7_3_partition_two_one_at_a_time() -> None:
    """Also MS_T83: the protected groups stay, and the last phase is no different from the first."""
    world = rolled(4, maxUnavailable=1, partition=2)
    old = world.status["currentRevision"]
    walk(
        world,
        4,
        [
            ("", "AR AR AR AD", (4, 3, 0, 3), UPDATING),
            ("g3 gone", "AR AR AR BC", (4, 3, 1, 3), UPDATING),
            ("g3 ready", "AR AR AD BR", (4, 3, 1, 2), UPDATING),
            ("g2 gone", "AR AR BC BR", (4, 3, 2, 2), UPDATING),
            ("g2 ready", "AR AR BR BR", (4, 4, 2, 2), DONE),
        ],
    )
    assert world.status["currentRevision"] == old
    world.apply(serving(4, [role(image="b")], rollout={"partition": 0}))
    walk(
        world,
        4,
        [
            ("g2 ready", "AR AD BR BR", (4, 3, 2, 1), UPDATING),
            ("g1 gone", "AR BC BR BR", (4, 3, 3, 1), UPDATING),
        ],
    )


def test_ms_d22_an_update_that_takes_all_its_groups_at_once_shows_as_one() -> None:
    """Mutant: `current > partition` decides about UpdateInProgress."""
    walk(
        rolled(4, maxUnavailable=2, partition=2),
        4,
        [
            ("", "AR AR AD AD", (4, 2, 0, 2), UPDATING),
            ("g2 gone", "AR AR BC AD", (4, 2, 1, 2), UPDATING),
            ("g3 gone", "AR AR BC BC", (4, 2, 2, 2), UPDATING),
            ("g2 ready", "AR AR BR BC", (4, 3, 2, 2), UPDATING),
            ("g3 ready", "AR AR BR BR", (4, 4, 2, 2), DONE),
        ],
    )


def test_example_3_7_4_a_surged_group_makes_room_and_leaves_at_the_end() -> None:
    world = rolled(4, maxUnavailable=0, maxSurge=1)
    walk(
        world,
        5,
        [
            ("", "AR AR AR AR BC", (5, 4, 1, 4), UPDATING),
            ("g4 ready", "AR AR AR AD BR", (5, 4, 1, 3), UPDATING),
            ("g3 gone", "AR AR AR BC BR", (5, 4, 2, 3), UPDATING),
            ("g3 ready", "AR AR AD BR BR", (5, 4, 2, 2), UPDATING),
            ("g2 gone", "AR AR BC BR BR", (5, 4, 3, 2), UPDATING),
            ("g2 ready", "AR AD BR BR BR", (5, 4, 3, 1), UPDATING),
            ("g1 gone", "AR BC BR BR BR", (5, 4, 4, 1), UPDATING),
            ("g1 ready", "AD BR BR BR BR", (5, 4, 4, 0), UPDATING),
            ("g0 gone", "BC BR BR BR BR", (5, 4, 5, 0), UPDATING),
        ],
    )
    happens(world, "g0 ready")
    assert picture(world, 5) == "BR BR BR BR BD"
    happens(world, "g4 gone")
    assert world.counts() == (4, 4, 4, 4)
    assert world.status["currentRevision"] == world.status["updateRevision"]


def test_surge_and_unavailability_together_start_and_delete_at_once() -> None:
    world = rolled(4, maxUnavailable=1, maxSurge=1)
    assert picture(world, 5) == "AR AR AR AD BC"
    assert world.counts()[:2] == (5, 3)


def test_ms_t82_surge_leaves_protected_groups_alone() -> None:
    world = World(serving(4, rollout={"partition": 2, "maxUnavailable": 0, "maxSurge": 1}))
    world.settle()
    protected = [world.uid(f"x-{ordinal}-prefill-0-0") for ordinal in (0, 1)]
    knobs = {"partition": 2, "maxUnavailable": 0, "maxSurge": 1}
    world.apply(serving(4, [role(image="b")], rollout=knobs))
    world.history.clear()
    world.settle()
    assert max(replicas for replicas, *_ in world.history) == 5
    assert min(available for _, available, *_ in world.history) == 4
    assert [world.uid(f"x-{ordinal}-prefill-0-0") for ordinal in (0, 1)] == protected
    assert world.counts() == (4, 4, 2, 2)
    assert world.groups() == {0, 1, 2, 3}


def test_a_surged_group_becomes_an_ordinary_one_when_the_fleet_grows_over_it() -> None:
    world = rolled(2, maxUnavailable=0, maxSurge=1)
    world.start()
    uid = world.uid("x-2-prefill-0-0")
    document = serving(3, [role(image="b")], rollout={"maxUnavailable": 0, "maxSurge": 1})
    world.apply(document)
    world.settle()
    assert world.groups() == {0, 1, 2}
    assert world.uid("x-2-prefill-0-0") == uid


def test_a_rollout_that_is_turned_back_releases_its_surge() -> None:
    world = rolled(3, image="bad", maxUnavailable=0, maxSurge=2)
    world.apply(serving(3, rollout={"maxUnavailable": 0, "maxSurge": 2}))
    world.settle()
    assert world.groups() == {0, 1, 2}
    assert {world.image(name) for name in world.pod_names()} == {"a"}


def test_ms_t02_a_changed_image_replaces_the_pod_under_its_name() -> None:
    world = rolled(1)
    world.settle()
    assert world.pod_names() == ["x-0-prefill-0-0"]
    assert world.image("x-0-prefill-0-0") == "b"


def test_ms_t28_never_more_unavailable_than_allowed() -> None:
    world = rolled(4, maxUnavailable=2)
    world.settle()
    assert all(4 - available <= 2 for _, available, *_ in world.history)
    assert {world.image(name) for name in world.pod_names()} == {"b"}


def test_ms_t29_a_bad_image_stops_after_max_unavailable_groups() -> None:
    world = World(serving(6, rollout={"maxUnavailable": 2}))
    world.settle()
    world.unready = lambda pod: pod["spec"]["containers"][0]["image"] == "bad"
    world.apply(serving(6, [role(image="bad")], rollout={"maxUnavailable": 2}))
    world.settle()
    assert picture(world, 6) == "AR AR AR AR BADC BADC"
    assert world.counts() == (6, 4, 2, 4)


def test_a_fixed_image_replaces_the_stuck_groups_first() -> None:
    world = World(serving(4, rollout={"maxUnavailable": 1}))
    world.settle()
    world.unready = lambda pod: pod["spec"]["containers"][0]["image"] == "bad"
    world.apply(serving(4, [role(image="bad")], rollout={"maxUnavailable": 1}))
    world.settle()
    world.apply(serving(4, [role(image="c")], rollout={"maxUnavailable": 1}))
    world.reconcile()
    assert picture(world, 4) == "AR AR AR BADD"
    world.settle()
    assert {world.image(name) for name in world.pod_names()} == {"c"}


def test_ms_t30_groups_that_do_not_run_are_replaced_first() -> None:
    candidates = [Candidate(0, False), Candidate(1, False), Candidate(2, False), Candidate(3, True)]
    assert [one.ordinal for one in replacement_order(candidates)[:2]] == [2, 1]


def test_ms_t31_at_the_end_everything_has_the_new_revision() -> None:
    world = World(serving(3))
    world.settle()
    old = world.status["currentRevision"]
    world.apply(serving(3, [role(image="b")]))
    world.settle()
    assert world.status["currentRevision"] == world.status["updateRevision"] != old
    assert world.counts() == (3, 3, 3, 3)
    labels = {world.label(name, "revision") for name in world.pod_names()}
    assert labels == {world.status["updateRevision"]}


def partitioned() -> World:
    """The state of T32: five groups, the lower three protected."""
    world = rolled(5, maxUnavailable=5, partition=3)
    world.settle()
    return world


def test_ms_t32_groups_below_the_partition_keep_image_and_revision() -> None:
    world = partitioned()
    assert picture(world, 5) == "AR AR AR BR BR"
    old, new = world.status["currentRevision"], world.status["updateRevision"]
    labels = [world.label(f"x-{ordinal}-prefill-0-0", "revision") for ordinal in range(5)]
    assert labels == [old, old, old, new, new]


def test_ms_t33_a_lost_protected_group_comes_back_as_it_was() -> None:
    world = partitioned()
    before = (world.status["currentRevision"], world.status["updateRevision"])
    uid = world.uid("x-1-prefill-0-0")
    world.delete_pod("x-1-prefill-0-0")
    world.settle()
    assert picture(world, 5) == "AR AR AR BR BR"
    assert world.uid("x-1-prefill-0-0") != uid
    assert world.label("x-1-prefill-0-0", "revision") == before[0]
    assert (world.status["currentRevision"], world.status["updateRevision"]) == before


def test_ms_t34_new_groups_beyond_the_partition_are_new() -> None:
    world = partitioned()
    uids = [world.uid(f"x-{ordinal}-prefill-0-0") for ordinal in range(5)]
    world.scale(7)
    world.settle()
    assert picture(world, 7) == "AR AR AR BR BR BR BR"
    assert [world.uid(f"x-{ordinal}-prefill-0-0") for ordinal in range(5)] == uids


def test_ms_t35_shrinking_to_the_partition_leaves_the_old_ones() -> None:
    world = partitioned()
    world.scale(3)
    world.settle()
    assert picture(world, 5) == "AR AR AR -- --"
    assert world.counts() == (3, 3, 0, 3)


def test_ms_t36_a_gap_below_the_partition_is_filled_with_the_current_revision() -> None:
    world = fleet(serving(2, rollout={"partition": 2}), {0, 2})
    old = world.status["currentRevision"]
    world.apply(serving(4, [role(image="b")], rollout={"partition": 2}))
    world.reconcile()
    assert world.image("x-1-prefill-0-0") == "a"
    assert world.label("x-1-prefill-0-0", "revision") == old
    assert world.image("x-3-prefill-0-0") == "b"


@pytest.mark.parametrize(
    ("value", "total", "round_up", "count"),
    [
        pytest.param("50%", 3, True, 2, id="MS_T38-50%"),
        pytest.param("1%", 10, True, 1, id="MS_T38-1%"),
        pytest.param("100%", 5, True, 5, id="MS_T38-100%"),
        pytest.param("50%", 9, False, 4, id="MS_T39-50%"),
        pytest.param("20%", 10, False, 2, id="MS_T39-20%"),
        pytest.param("100%", 3, False, 3, id="MS_T39-100%"),
        ("29%", 100, False, 29),
        ("0.5%", 200, False, 1),
        (7, 3, False, 7),
        ("7", 3, False, 7),
        (None, 3, True, 0),
        (-1, 3, True, 0),
    ],
)
def test_counts_and_percentages(
    value: int | str | None, total: int, round_up: bool, count: int
) -> None:
    assert resolve(value, total, round_up=round_up) == count


@pytest.mark.parametrize(
    ("present", "wanted", "limit", "unavailable", "budget"),
    [
        (4, 4, 1, 0, 1),
        (4, 4, 1, 1, 0),
        (4, 4, 2, 1, 1),
        (3, 4, 2, 1, 0),
        (5, 4, 0, 0, 1),
        (5, 5, 9, 0, 5),
        (2, 4, 1, 0, 0),
    ],
)
def test_the_budget_of_an_update(
    present: int, wanted: int, limit: int, unavailable: int, budget: int
) -> None:
    assert replacement_budget(present, wanted, limit, unavailable) == budget


def test_ms_d24_an_update_goes_on_when_the_share_rounds_to_nothing() -> None:
    """Mutant: return the resolved value alone from `unavailable_limit`."""
    assert unavailable_limit("25%", 3) == 1
    assert unavailable_limit(0, 3, surge=1) == 0
    world = rolled(3, maxUnavailable="25%")
    world.settle()
    assert picture(world, 3) == "BR BR BR"


def test_ms_d24_unhealthy_protected_groups_use_up_the_budget() -> None:
    """Mutant: count only groups at or above the partition as unavailable."""
    world = World(serving(4, rollout={"maxUnavailable": 1, "partition": 2}))
    world.settle()
    world.unready = lambda pod: pod["metadata"]["name"].startswith("x-0-")
    world.unready_pod("x-0-prefill-0-0")
    world.apply(serving(4, [role(image="b")], rollout={"maxUnavailable": 1, "partition": 2}))
    world.settle()
    assert picture(world, 4) == "AR AR AR AR"
    assert world.counts()[1] == 3


def test_ms_d3_an_old_group_is_not_changed_before_its_turn() -> None:
    """Mutant: `newest_shape` for every group in `TemplateBook.shape`."""
    world = World(serving(2, [role(workers=1)], rollout={"maxUnavailable": 1}))
    world.settle()
    world.unready = lambda pod: pod["spec"]["containers"][0]["image"] == "bad"
    changed = [role(workers=2, image="bad"), role("decode", image="bad")]
    world.apply(serving(2, changed, rollout={"maxUnavailable": 1}))
    world.settle()
    old = [name for name in world.pod_names() if name.startswith("x-0-")]
    assert old == ["x-0-prefill-0-0", "x-0-prefill-0-1"]
    assert {world.image(name) for name in old} == {"a"}
    assert world.counts()[1] == 1


def test_ms_t87_more_workers_reach_a_group_only_when_it_is_replaced() -> None:
    world = World(serving(2, [role(workers=1)], rollout={"maxUnavailable": 1}))
    world.settle()
    world.apply(serving(2, [role(workers=2)], rollout={"maxUnavailable": 1}))
    world.reconcile()
    assert "x-0-prefill-0-2" not in world.pod_names()
    world.settle()
    assert len(world.pod_names()) == 6
    sizes = {
        one["value"]
        for name in world.pod_names()
        for one in world.pod(name)["spec"]["containers"][0]["env"]
        if one["name"] == "GROUP_SIZE"
    }
    assert sizes == {"3"}


def test_ms_d5_old_groups_are_ready_by_their_own_template() -> None:
    world = World(serving(2, [role(workers=1)], rollout={"partition": 1}))
    world.settle()
    grown = [role(workers=2, image="b"), role("decode")]
    world.apply(serving(2, grown, rollout={"partition": 1}))
    world.settle()
    world.memory = {}
    world.settle()
    assert world.counts() == (2, 2, 1, 1)
    assert world.true_conditions() == ["Available"]


def test_an_added_role_makes_every_group_outdated() -> None:
    world = World(serving(2))
    world.settle()
    world.apply(serving(2, [role(), role("decode")]))
    world.reconcile()
    assert world.deleting("x-1-prefill-0-0")
    assert not world.deleting("x-0-prefill-0-0")
    world.settle()
    assert len(world.pod_names()) == 4


def test_roles_in_another_order_restart_nothing() -> None:
    world = World(serving(2, [role(), role("decode")]))
    world.settle()
    uids = {world.uid(name) for name in world.pod_names()}
    world.apply(serving(2, [role("decode"), role()]))
    world.settle()
    assert {world.uid(name) for name in world.pod_names()} == uids
    assert world.counts() == (2, 2, 2, 2)


def test_ms_d9_the_snapshot_of_a_revision_stays_until_its_replacement_is_up() -> None:
    """Mutant: `target` as soon as no group uses `previous` in `settle_current_revision`."""
    world = rolled(1)
    world.finish_deletions()
    world.reconcile()
    assert world.image("x-0-prefill-0-0") == "b"
    assert world.status["currentRevision"] != world.status["updateRevision"]
    world.start()
    world.reconcile()
    assert world.status["currentRevision"] == world.status["updateRevision"]


def test_what_is_not_part_of_the_templates_never_rolls_pods() -> None:
    world = World(serving(2))
    world.settle()
    uids = {world.uid(name) for name in world.pod_names()}
    world.apply(serving(2, grace_seconds=9, recoveryPolicy="None", schedulerName="other"))
    world.settle()
    assert {world.uid(name) for name in world.pod_names()} == uids


def test_f15_a_changed_variable_rolls_the_pods() -> None:
    world = World(serving(1))
    world.settle()
    changed = role()
    changed["entryTemplate"]["spec"]["containers"][0]["env"] = [{"name": "A", "value": "1"}]
    uid = world.uid("x-0-prefill-0-0")
    world.apply(serving(1, [changed]))
    world.settle()
    assert world.uid("x-0-prefill-0-0") != uid


def test_shrinking_during_an_update_still_ends_well() -> None:
    world = rolled(4, maxUnavailable=1)
    world.scale(2)
    world.settle()
    assert len(world.groups()) == 2
    assert {world.image(name) for name in world.pod_names()} == {"b"}
    assert world.counts() == (2, 2, 2, 2)
