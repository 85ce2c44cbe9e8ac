"""Accelerators run out and come back: both deciders together, on a manual clock."""

from itertools import groupby, pairwise

from tests.scenario.mix_world import MixWorld, Target


def mixed(slots: int, **settings: int) -> MixWorld:
    """Eight units of load; an H100 serves 4 for 100, an A100 1 for 60."""
    h100 = Target("h100", 100, 2, 4.0, most=4, slots=slots, annotations=capacity(4))
    a100 = Target("a100", 60, 1, 1.0, least=1, most=12, annotations=capacity(1))
    world = MixWorld(h100, a100, **settings)
    world.load = 8.0
    return world


def capacity(units: int) -> dict[str, str]:
    return {"inferbus.dev/capacity": f"requests={units}/s"}


def test_with_room_the_cheapest_runs() -> None:
    assert set(mixed(slots=4).run(600)) == {(2, 1)}


def test_pods_that_stay_pending_give_their_load_to_the_second_best() -> None:
    world = mixed(slots=0)
    before, after = world.run(100), world.run(100)
    assert set(before) == {(2, 1)}
    assert after[-1] == (0, 8)
    assert world.placed_units() >= 8
    assert "0 can be scheduled" in world.allocations[-1].record.limiters[-1].detail


def test_what_has_a_place_stays() -> None:
    world = mixed(slots=1)
    assert world.run(200)[-1] == (1, 4)


def test_a_probe_is_one_replica_that_nobody_counts_on() -> None:
    world = mixed(slots=0, longest_probe_ms=1_200_000)
    world.run(200)
    seen = world.run(4 * 3600)
    assert {a100 for _, a100 in seen} == {8}
    assert {h100 for h100, _ in seen} == {0, 1}
    assert world.placed_units() >= 8
    runs = [(h100, len(list(steps)) * 5) for h100, steps in groupby(h100 for h100, _ in seen)]
    pauses = [seconds for h100, seconds in runs[1:-1] if h100 == 0]
    assert 400 < pauses[0] < 700
    assert all(later >= earlier for earlier, later in pairwise(pauses))
    assert 1100 < pauses[-1] <= 1300


def test_the_load_returns_when_there_is_room_again() -> None:
    world = mixed(slots=0)
    world.run(200)
    world.targets[0].slots = 4
    for seen in world.run(1200):
        assert 4 * seen[0] + seen[1] >= 8
    assert seen == (2, 1)
    assert world.run(3600)[-1] == (2, 1)
    assert world.demands[-1].targets[0].schedulable is None


def test_one_place_that_comes_back_takes_one_replica() -> None:
    world = mixed(slots=0)
    world.run(200)
    world.targets[0].slots = 1
    world.run(1200)
    seen = world.run(7200)
    assert {a100 for _, a100 in seen} == {4}
    assert {h100 for h100, _ in seen} == {1, 2}


def test_a_node_that_is_lost_takes_its_replicas_along() -> None:
    world = mixed(slots=4)
    world.run(60)
    world.targets[0].slots = 1
    assert world.run(300)[-1] == (1, 4)


def test_a_minimum_that_cannot_be_scheduled_is_not_counted_on() -> None:
    world = MixWorld(
        Target("h100", 100, 2, 4.0, least=1, most=4, slots=0, annotations=capacity(4)),
        Target("a100", 60, 1, 1.0, least=1, most=12, annotations=capacity(1)),
    )
    world.load = 8.0
    assert world.run(300)[-1] == (1, 8)
    assert world.placed_units() == 8


def test_the_demand_does_not_grow_with_the_probes() -> None:
    """A probe of little weight must not look like capacity that is in use."""
    small = Target("small", 5, 8, 1.0, most=30, slots=0, annotations=capacity(1))
    large = Target("large", 100, 2, 10.0, least=1, most=8, annotations=capacity(10))
    world = MixWorld(small, large, longest_probe_ms=600_000)
    world.load = 20.0
    world.run(600)
    demands = {demand.capacity for demand in world.demands[3:]}
    world.run(3 * 3600)
    assert {demand.capacity for demand in world.demands[-5:]} <= demands | {20.0}
    assert world.targets[1].replicas == 2
