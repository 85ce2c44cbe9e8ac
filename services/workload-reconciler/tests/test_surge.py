"""Groups that stand in during an update (ruling F6, modelserving spec 3.7.4; T82)."""

from workload_builders import role, serving
from workload_rollouts import UPDATING, happens, picture, rolled, walk
from workload_world import World


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
