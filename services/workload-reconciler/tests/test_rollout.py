"""Rolling updates of whole groups (modelserving spec 3.7, 3.9; T2, T28 to T36, T39, T82, T83)."""

import pytest
from workload_builders import role, serving
from workload_rollouts import DONE, UPDATING, picture, rolled, walk
from workload_world import World

from inferbus_workload_reconciler.policy_budget import (
    replacement_budget,
    resolve,
    unavailable_limit,
)
from inferbus_workload_reconciler.policy_groups import Candidate, replacement_order


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


def test_shrinking_during_an_update_still_ends_well() -> None:
    world = rolled(4, maxUnavailable=1)
    world.scale(2)
    world.settle()
    assert len(world.groups()) == 2
    assert {world.image(name) for name in world.pod_names()} == {"b"}
    assert world.counts() == (2, 2, 2, 2)
