"""Which groups come and which go (modelserving spec 3.4; T1 to T4, T7 to T10, T12 to T27)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from workload_builders import role, serving
from workload_world import World, fleet

from inferbus_workload_reconciler.policy_groups import (
    Candidate,
    missing_ordinals,
    surplus,
)

C = Candidate


def test_ms_t01_groups_and_role_replicas_are_created() -> None:
    world = World(serving(2, [role(replicas=3)]))
    world.settle()
    assert world.pod_names() == [f"x-{g}-prefill-{r}-0" for g in (0, 1) for r in (0, 1, 2)]
    assert world.counts() == (2, 2, 2, 2)
    assert world.true_conditions() == ["Available"]


def test_ms_t03_scaling_up_fills_ordinals_from_the_bottom() -> None:
    world = World(serving(1))
    world.settle()
    world.scale(3)
    world.settle()
    assert world.groups() == {0, 1, 2}
    assert world.status["observedGeneration"] == 2
    assert world.counts()[:2] == (3, 3)


def test_ms_t04_scaling_down_leaves_the_lowest_ordinals() -> None:
    world = World(serving(3))
    world.settle()
    world.scale(1)
    world.settle()
    assert world.pod_names() == ["x-0-prefill-0-0"]
    assert world.counts() == (1, 1, 1, 1)


@pytest.mark.parametrize(
    ("present", "wanted", "created"),
    [
        pytest.param({0, 5}, 4, {1, 2}, id="MS_T07"),
        pytest.param({10}, 3, {0, 1}, id="MS_T08"),
        pytest.param({0, 1}, 5, {2, 3, 4}, id="MS_T09"),
    ],
)
def test_gaps_are_filled_and_what_stands_beyond_is_tolerated(
    present: set[int], wanted: int, created: set[int]
) -> None:
    world = fleet(serving(1), present)
    world.scale(wanted)
    world.settle()
    assert world.groups() == present | created
    assert sorted(world.created) == [f"x-{ordinal}-prefill-0-0" for ordinal in sorted(created)]


def test_ms_t10_effort_does_not_depend_on_the_number_wanted() -> None:
    assert missing_ordinals({0, 1}, 2**31 - 1, limit=2) == [2, 3]


def test_a_huge_fleet_is_built_in_batches() -> None:
    world = World(serving(300))
    planned = world.reconcile()
    assert planned.next_check_ms == world.now_ms
    assert 0 < len(world.pod_names()) < 300
    world.settle()
    assert len(world.pod_names()) == 300


@pytest.mark.parametrize(
    ("candidates", "wanted", "partition", "deleted"),
    [
        pytest.param([C(0, True), C(1, True), C(2, True), C(3, True)], 2, 0, [3, 2], id="MS_T12"),
        pytest.param([C(0, True), C(2, True), C(5, True), C(8, True)], 2, 0, [8, 5], id="MS_T13"),
        pytest.param([C(0, True), C(1, True), C(2, False), C(3, True)], 2, 0, [2, 3], id="MS_T14"),
        pytest.param(
            [C(0, True, cost=100), C(1, True, cost=50), C(2, True), C(3, True, cost=75)],
            2,
            0,
            [2, 1],
            id="MS_T15",
        ),
        pytest.param(
            [
                C(0, True, cost=10),
                C(1, False, cost=1000),
                C(2, True, cost=20),
                C(3, True, cost=30),
            ],
            2,
            0,
            [1, 0],
            id="MS_T16",
        ),
        pytest.param(
            [
                C(0, True, cost=100),
                C(1, True, cost=-100),
                C(2, True, cost=50),
                C(3, True, cost=75),
            ],
            2,
            0,
            [1, 2],
            id="MS_T17",
        ),
        pytest.param(
            [
                C(0, True, cost=100),
                C(1, False),
                C(2, True, cost=50),
                C(3, False, deleting=True),
                C(4, True, cost=200),
            ],
            2,
            0,
            [3, 1, 2],
            id="MS_T18",
        ),
        pytest.param(
            [
                C(0, True, cost=1),
                C(1, True, cost=2),
                C(2, True),
                C(3, True, cost=9),
                C(4, True, cost=8),
            ],
            3,
            3,
            [4, 3],
            id="MS_T24",
        ),
        pytest.param(
            [
                C(0, True, cost=100),
                C(1, True, cost=50),
                C(2, True, cost=0),
                C(3, True, cost=200),
                C(4, True, cost=150),
            ],
            2,
            3,
            [4, 3, 2],
            id="MS_T25",
        ),
        pytest.param(
            [
                C(0, True, cost=100),
                C(1, True, cost=50),
                C(2, True, cost=0),
                C(3, True, cost=200),
            ],
            2,
            5,
            [2, 1],
            id="MS_T26",
        ),
        pytest.param(
            [C(0, True), C(1, False), C(2, True), C(3, True), C(4, True)],
            3,
            3,
            [4, 3],
            id="MS_T27",
        ),
    ],
)
def test_the_order_of_deletion(
    candidates: list[Candidate], wanted: int, partition: int, deleted: list[int]
) -> None:
    assert [one.ordinal for one in surplus(candidates, wanted, partition)] == deleted


def test_ms_t19_a_group_that_is_dear_to_delete_survives() -> None:
    world = World(serving(4))
    world.settle()
    for ordinal in range(4):
        world.cost(f"x-{ordinal}-prefill-0-0", 100 * ordinal)
    world.scale(1)
    world.settle()
    assert world.groups() == {3}


def test_ms_t21_groups_and_roles_shrink_together() -> None:
    world = World(serving(2, [role(replicas=2), role("decode")]))
    world.settle()
    for name in world.pod_names():
        world.cost(name, 100 if name.startswith("x-1") else 0)
    world.apply(serving(1, [role(replicas=1), role("decode")]))
    world.settle()
    assert len(world.pod_names()) == 2
    assert world.groups() == {1}


def test_ms_t22_the_group_that_never_became_ready_goes_first() -> None:
    world = World(serving(4))
    world.unready = lambda pod: pod["metadata"]["name"].startswith("x-1-")
    world.settle()
    assert world.counts()[1] == 3
    world.scale(3)
    world.settle()
    assert world.groups() == {0, 2, 3}


def test_ms_t24_protected_groups_stay_however_cheap_they_are() -> None:
    world = World(serving(5, rollout={"partition": 3}))
    world.settle()
    for ordinal in range(5):
        world.cost(f"x-{ordinal}-prefill-0-0", ordinal)
    world.scale(3)
    world.settle()
    assert world.groups() == {0, 1, 2}


def test_ms_d10_protection_goes_by_ordinal_also_in_a_sparse_fleet() -> None:
    """Mutant: `partition` lowest of the list instead of `ordinal < partition` in `surplus`."""
    world = fleet(serving(1, rollout={"partition": 2}), {0, 5, 7})
    world.cost("x-5-prefill-0-0", -10)
    world.scale(2)
    world.settle()
    assert world.groups() == {0, 7}


def test_deleting_groups_keep_their_ordinals_until_they_are_gone() -> None:
    world = World(serving(2))
    world.settle()
    world.scale(1)
    world.reconcile()
    world.scale(2)
    world.reconcile()
    assert world.live_names() == ["x-0-prefill-0-0"]
    assert world.counts()[0] == 2
    world.finish_deletions()
    world.settle()
    assert world.groups() == {0, 1}


def test_a_shrink_that_was_cut_short_takes_the_same_group_again() -> None:
    world = World(serving(3, [role(replicas=2)]))
    world.settle()
    world.scale(2)
    world.reconcile(keep=lambda action: action.name == "x-2-prefill-0-0")
    world.finish_deletions()
    world.settle()
    assert world.groups() == {0, 1}


candidates = st.lists(
    st.builds(Candidate, st.integers(0, 30), st.booleans(), st.booleans(), st.integers(-5, 5)),
    unique_by=lambda one: one.ordinal,
)


@given(candidates, st.integers(0, 30), st.integers(0, 30))
def test_scaling_down_takes_the_difference_and_protected_ones_last(
    found: list[Candidate], wanted: int, partition: int
) -> None:
    gone = surplus(found, wanted, partition)
    assert len(gone) == max(0, len(found) - wanted)
    if any(one.ordinal < partition for one in gone):
        assert all(one in gone for one in found if one.ordinal >= partition)


@given(st.sets(st.integers(0, 40)), st.integers(0, 40))
def test_scaling_up_fills_to_the_number_wanted_with_the_lowest_ordinals(
    present: set[int], wanted: int
) -> None:
    new = missing_ordinals(present, wanted)
    assert len(present | set(new)) == max(len(present), wanted)
    assert not present & set(new)
    assert all(ordinal < wanted for ordinal in new)
    assert new == sorted(new)
