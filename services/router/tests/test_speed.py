"""How fast endpoints are thought to be."""

from random import Random

import pytest

from inferbus_router.policy_speed import (
    DEFAULT_MS_PER_TOKEN,
    FASTEST_MS_PER_TOKEN,
    SLOWEST_MS_PER_TOKEN,
    FleetSpeed,
    Slowness,
)


def test_nothing_is_known_at_first() -> None:
    assert FleetSpeed().ms_per_token == DEFAULT_MS_PER_TOKEN
    assert Slowness().factor == 1


@pytest.mark.parametrize("ms_per_token", [0.02, 0.5, 3.0])
def test_the_fleets_speed_is_learned(ms_per_token: float) -> None:
    fleet, slowness = FleetSpeed(), Slowness()
    for _ in range(100):
        slowness.learn(2000, 2000 * ms_per_token, fleet)

    assert fleet.ms_per_token * slowness.factor == pytest.approx(ms_per_token, rel=0.15)


def test_chance_makes_no_endpoint_slow() -> None:
    chance, fleet = Random(5), FleetSpeed()
    alike = [Slowness() for _ in range(8)]
    for _ in range(400):
        for each in alike:
            each.learn(1000, 125 * chance.lognormvariate(0, 0.3), fleet)

    assert {each.factor for each in alike} == {1.0}


def test_the_first_that_is_measured_is_not_taken_for_fast() -> None:
    fleet, first, unmeasured = FleetSpeed(), Slowness(), Slowness()
    for _ in range(3):
        first.learn(2000, 2, fleet)

    assert first.factor == unmeasured.factor


def test_rt_13_one_that_is_slow_is_known_as_slow_and_changes_nothing_about_the_others() -> None:
    chance, fleet = Random(5), FleetSpeed()
    alike = [Slowness() for _ in range(7)]
    slow = Slowness()
    for _ in range(200):
        for each in alike:
            each.learn(1000, 125 * chance.lognormvariate(0, 0.3), fleet)
        slow.learn(1000, 500 * chance.lognormvariate(0, 0.3), fleet)

    assert slow.factor > 1.8
    assert slow.factor > 2 * max(each.factor for each in alike)
    assert max(each.factor for each in alike) - min(each.factor for each in alike) < 0.2


def test_one_time_out_of_all_proportion_moves_it_little() -> None:
    fleet, slowness = FleetSpeed(), Slowness()
    for _ in range(50):
        slowness.learn(1000, 125, fleet)
    slowness.learn(1000, 600_000, fleet)

    assert fleet.ms_per_token * slowness.factor < 1.2 * DEFAULT_MS_PER_TOKEN


def test_short_prompts_tell_nothing() -> None:
    fleet, slowness = FleetSpeed(), Slowness()
    slowness.learn(5, 50, fleet)

    assert fleet.ms_per_token == DEFAULT_MS_PER_TOKEN


@pytest.mark.parametrize(
    ("took_ms", "bound"), [(0, FASTEST_MS_PER_TOKEN), (1e9, SLOWEST_MS_PER_TOKEN)]
)
def test_speeds_are_bounded(took_ms: float, bound: float) -> None:
    fleet, slowness = FleetSpeed(), Slowness()
    for _ in range(300):
        slowness.learn(10_000, took_ms, fleet)

    assert fleet.ms_per_token == pytest.approx(bound, rel=0.5)
    assert FASTEST_MS_PER_TOKEN <= fleet.ms_per_token <= SLOWEST_MS_PER_TOKEN
