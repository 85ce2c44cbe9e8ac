"""What a replica of each target serves: written, promised by its accelerators, or learned."""

from dataclasses import replace

import pytest

from inferbus_contracts.events.scaling import CapacitySource
from tests.scenario.mix_world import MixWorld, Target

FAST = Target("fast", 100, 1, 4.0, most=6)
SLOW = Target("slow", 60, 2, 1.0, least=1, most=12)


def world(**annotations: str) -> MixWorld:
    targets = [
        replace(
            target,
            pods=[],
            annotations={"inferbus.dev/capacity": annotations[target.name]}
            if target.name in annotations
            else {},
        )
        for target in (FAST, SLOW)
    ]
    made = MixWorld(*targets)
    made.load = 6.0
    return made


def capacities(made: MixWorld) -> tuple[float, ...]:
    return tuple(option.capacity for option in made.demands[-1].targets)


def test_what_is_written_counts_from_the_start() -> None:
    made = world(fast="tokens=4000/s", slow="tokens=1000/s")
    made.waiting = 2
    made.run(300)
    assert capacities(made) == (4.0, 1.0)
    assert made.demands[-1].capacity_source is CapacitySource.ANNOTATION


def test_without_a_word_all_are_equal_until_requests_wait() -> None:
    made = world()
    made.run(600)
    assert capacities(made) == (1.0, 1.0)
    assert made.demands[-1].capacity_source is None


def test_what_they_hold_while_requests_wait_is_learned() -> None:
    made = world()
    made.load, made.waiting = 100.0, 2
    early = made.run(60)
    assert early
    assert capacities(made) == (1.0, 1.0)
    made.run(120)
    assert made.demands[-1].capacity_source is CapacitySource.LEARNED
    assert capacities(made) == pytest.approx((4.0, 1.0), rel=0.02)


def test_what_was_learned_finds_the_cheaper_mix() -> None:
    """Equal capacities would serve 12 by the slow ones alone, for 720 and two thirds too little."""
    made = world()
    made.load, made.waiting = 100.0, 2
    made.run(300)
    made.load, made.waiting = 12.0, 0
    made.run(900)
    units = sum(target.units * target.replicas for target in made.targets)
    assert units >= 12
    assert (made.targets[0].replicas, made.targets[1].replicas) == (3, 1)


def test_written_for_some_in_one_unit_is_not_mixed_with_what_was_learned() -> None:
    made = world(fast="requests=9/s")
    made.load, made.waiting = 100.0, 2
    made.run(300)
    assert capacities(made) == pytest.approx((4.0, 1.0), rel=0.02)
    assert made.demands[-1].capacity_source is CapacitySource.LEARNED


def test_idle_engines_teach_nothing() -> None:
    """The rate of an engine that waits for work is that of its clients."""
    made = world()
    made.load = 0.1
    made.run(600)
    assert capacities(made) == (1.0, 1.0)
