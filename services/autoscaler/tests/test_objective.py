"""Scaling by an objective alone: what users notice, and what operators would complain about."""

import random
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inferbus_autoscaler.core import decide, recompute
from inferbus_autoscaler.events import Demanded
from inferbus_autoscaler.outcomes import Decide, Demand
from inferbus_autoscaler.policy_check import fitted, problems_of
from inferbus_autoscaler.policy_objective import hold_ms
from inferbus_autoscaler.state import TargetState
from inferbus_contracts.deciding import MOST_RECORD_BYTES
from inferbus_contracts.events.scaling import Limiter
from inferbus_contracts.resources.annotations import ObjectiveMetric
from services.autoscaler.tests.builders import KEY, T0, Fleet, mix_facts, policy
from services.autoscaler.tests.objective_world import Town, by_objective, objective

HOUR_SECONDS = 3_600
IDLE_SECONDS = 300


def changes_of_direction(replicas: list[int]) -> int:
    steps = [1 if after > before else -1 for before, after in pairwise(replicas) if after != before]
    return sum(one != two for one, two in pairwise(steps))


def test_more_load_is_served_by_more_replicas_and_less_by_fewer() -> None:
    town = Town(2).run(600, 2)
    assert town.replicas <= 3
    town.run(900, 20)
    assert 10 <= town.ready <= 15
    town.run(HOUR_SECONDS, 4)
    assert 2 <= town.replicas <= 5


def test_a_ramp_is_served_before_requests_wait() -> None:
    """Half an hour of growth, known after a tenth of it, with a start-up of three minutes."""
    town = Town(12, startup_seconds=180).run(900, 20)
    for load in range(20, 70):
        if load == 35:
            town.late = 0
        town.run(36, load)
    assert town.late == 0


def test_noise_makes_it_change_direction_seldom() -> None:
    chance = random.Random(3)
    town = Town(12)
    for _ in range(2 * HOUR_SECONDS):
        town.run(1, sum(chance.random() < 0.1 for _ in range(200)))
    assert changes_of_direction(town.seen[HOUR_SECONDS:]) <= 4
    assert town.late <= 0.005 * town.counted


def test_it_jumps_to_what_is_needed() -> None:
    """Not by steps: one decision asks for most of it."""
    town = Town(2).run(600, 2).run(15, 40)
    assert town.replicas >= 12
    town.run(60, 40)
    assert town.replicas >= 20


@pytest.mark.parametrize("startup_seconds", [30, 200, 600])
def test_a_need_is_remembered_for_longer_than_a_start_up_takes(startup_seconds: int) -> None:
    assert hold_ms(startup_seconds * 1000) >= startup_seconds * 1000
    town = Town(20, startup_seconds).run(1_200, 36)
    began = town.replicas
    town.run(startup_seconds, 2)
    assert town.replicas >= began
    assert town.run(2 * HOUR_SECONDS, 2).replicas <= 3


def test_going_down_waits_until_what_is_spared_is_worth_it() -> None:
    """One replica of many can be spared later than half of them."""

    def seconds_until_down(load: int) -> int:
        town = Town(40, startup_seconds=60).run(1_800, 70)
        before = town.replicas
        for second in range(HOUR_SECONDS):
            if town.run(1, load).replicas < before:
                return second
        return HOUR_SECONDS

    assert seconds_until_down(20) + 60 < seconds_until_down(64)


def test_the_last_replica_goes_after_an_idle_while_and_comes_back_at_once() -> None:
    town = Town(1, bounds=(0, 10)).run(600, 1)
    town.run(IDLE_SECONDS - 60, 0)
    assert town.replicas == 1
    town.run(HOUR_SECONDS, 0)
    assert town.replicas == 0
    town.fleet.feed(Demanded(at_ms=town.fleet.now_ms, router="router", held=1))
    assert town.replicas == 1
    assert town.fleet.decisions[-1].record.causes == list(town.fleet.decisions[-1].record.causes)
    assert town.run(120, 0).replicas == 1, "it has just been asked for"


def test_a_target_at_zero_is_not_started_before_somebody_asks() -> None:
    town = Town(0, bounds=(0, 10)).run(2 * IDLE_SECONDS, 0)
    assert set(town.seen) == {0}
    town.fleet.feed(Demanded(at_ms=town.fleet.now_ms, router="router", held=1))
    assert town.replicas == 1


def test_the_least_number_stays() -> None:
    assert Town(3, bounds=(2, 10)).run(HOUR_SECONDS, 0).replicas == 2


def test_a_target_with_metrics_comes_back_from_zero_too() -> None:
    fleet = Fleet(0, policy(bounds=(0, 10)))
    fleet.feed(Demanded(at_ms=T0, router="router", held=3))
    assert fleet.replicas == 1
    fleet.feed(Demanded(at_ms=T0, router="router", held=3))
    assert len(fleet.decisions) == 1


@pytest.mark.parametrize("lost", ["missing_pods", "collector_speaks"])
def test_partial_or_stale_data_takes_nothing_away(lost: str) -> None:
    town = Town(20).run(HOUR_SECONDS, 36)
    before = town.replicas
    setattr(town, lost, 1 if lost == "missing_pods" else False)
    town.run(2 * HOUR_SECONDS, 2)
    assert town.replicas == before
    assert town.run(60, 60).replicas > before, "more is never doubted"


@pytest.mark.parametrize("engines_count", [True, False])
def test_engines_stand_in_for_routers_that_fall_silent(engines_count: bool) -> None:
    town = Town(10, engines_count=engines_count).run(HOUR_SECONDS, 12)
    town.routers_speak = False
    least = min(town.run(HOUR_SECONDS, 12).seen[HOUR_SECONDS:])
    assert (least >= 6) is engines_count


def test_without_traffic_the_state_does_not_change() -> None:
    town = Town(1).run(600, 1).run(HOUR_SECONDS, 0)
    before = town.fleet.state
    town.run(60, 0)
    assert town.fleet.state is before or town.fleet.state == before
    after, effects = decide(before, town.sample(), town.fleet.facts(), T0)
    assert after is before
    assert effects == ()


def test_an_unknown_capacity_adds_only_when_requests_wait() -> None:
    town = Town(2, objective=objective(capacity=None)).run(600, 2)
    assert town.replicas == 2
    assert 4 <= town.run(50, 40).replicas <= 8, "it waits for what it has asked for"
    town.run(600, 40)
    enough = town.replicas
    assert enough >= 20
    assert town.queued == 0
    town.run(HOUR_SECONDS, 40)
    assert 20 <= town.replicas <= enough, "what was seen to serve it is enough for less"
    assert town.run(2 * HOUR_SECONDS, 10).replicas <= enough // 2


def test_late_first_tokens_make_it_more_cautious() -> None:
    by_first_token = objective(metric=ObjectiveMetric.TTFT)
    town = Town(5, objective=by_first_token).run(300, 5)
    memory = town.fleet.state.objective
    assert memory is not None
    late = Town(2, objective=objective()).run(300, 2).run(120, 40)
    cautious = late.fleet.state.objective
    assert cautious is not None
    assert cautious.caution > memory.caution


def test_a_freeze_holds_the_number() -> None:
    town = Town(4).run(300, 4)
    town.fleet.frozen = True
    town.run(600, 40)
    assert town.replicas == 4
    assert town.fleet.decisions[-1].record.binding is Limiter.FREEZE


def test_the_end_of_a_freeze_decides_at_that_instant() -> None:
    town = Town(4).run(300, 4)
    town.fleet.frozen_until_ms = town.fleet.now_ms + 60_500
    town.run(60, 40)
    assert town.replicas == 4
    town.run(1, 40)
    grown = next(one for one in town.fleet.decisions if one.desired > 4)
    assert grown.record.input["woken"]["due_ms"] == town.fleet.frozen_until_ms


def test_a_mix_is_told_what_it_has_to_serve() -> None:
    the_facts = mix_facts((1, 1), metrics={}, objective=objective())
    state = TargetState()
    told = []
    town = Town(2)
    for second in range(1, 61):
        town.counted += 20
        town.fleet.now_ms = T0 + second * 1000
        state, effects = decide(state, town.told(20), the_facts, town.fleet.now_ms)
        told += [effect.data for effect in effects if isinstance(effect, Demand)]
    assert told[-1].replicas >= 9


def test_a_record_names_the_load_and_gives_the_same_bytes_again() -> None:
    town = Town(2).run(300, 2).run(120, 30)
    for decided in town.fleet.decisions:
        assert recompute(decided.record) == decided.to_json()
    told = [metric for one in town.fleet.decisions for metric in one.record.metrics]
    assert {metric.name for metric in told} == {"demand"}
    assert max(metric.value or 0.0 for metric in told) == pytest.approx(30, rel=0.4)
    assert all("headroom" in metric.detail for metric in told)


def test_records_fit() -> None:
    the_policy = by_objective(objective=objective(metric=ObjectiveMetric.TTFT))
    assert problems_of(the_policy) == ()
    town = Town(2, objective=the_policy.objective, most_stamps=fitted(the_policy).most_stamps)
    chance = random.Random(4)
    for _ in range(200):
        town.run(5, chance.randrange(60))
    assert all(len(one.record.to_json()) <= MOST_RECORD_BYTES for one in town.fleet.decisions)


def test_without_metric_and_objective_nothing_can_be_decided() -> None:
    (problem,) = problems_of(policy(metrics={}))
    assert problem.field == "metrics"


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 60), st.integers(0, 200)), min_size=1, max_size=12))
def test_the_bounds_always_hold_and_late_is_never_for_want_of_asking(
    story: list[tuple[int, int]],
) -> None:
    town = Town(5, bounds=(2, 40))
    for seconds, load in story:
        town.run(seconds, load)
    assert all(2 <= replicas <= 40 for replicas in town.seen)


def test_two_histories_with_the_same_events_give_the_same_bytes() -> None:
    def told() -> list[bytes]:
        town = Town(3).run(200, 3).run(60, 20).run(300, 1)
        return [decided.to_json() for decided in town.fleet.decisions]

    assert told() == told()


def test_decisions_are_about_the_target() -> None:
    town = Town(2)
    _, effects = decide(TargetState(), town.sample(), town.fleet.facts(), town.fleet.now_ms)
    assert all(effect.target == KEY for effect in effects if isinstance(effect, Decide))
