"""Groups that an update leaves behind (modelserving spec 3.7.3, 3.9; T32 to T36, T83)."""

from workload_builders import role, serving
from workload_rollouts import DONE, UPDATING, picture, rolled, walk
from workload_world import World, fleet


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
