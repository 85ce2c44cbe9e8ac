"""Timers: set for the instant of a change, and only for one."""

from inferbus_autoscaler.core import decide
from inferbus_autoscaler.facts import Behaviour, PanicPolicy, StepPolicy
from inferbus_autoscaler.state import TargetState
from inferbus_contracts.deciding import ClearTimer, SetTimer, Woken
from services.autoscaler.tests.builders import STEP_MS, T0, Fleet, facts, policy, sample

MINUTE_MS = 60_000
STEADY = Behaviour(scale_down=StepPolicy(period_ms=0, stabilisation_ms=5 * MINUTE_MS))


def test_a_timer_is_set_for_the_instant_at_which_the_number_changes() -> None:
    fleet = Fleet(10, policy(behaviour=STEADY))
    fleet.run([100, 100, 20])
    assert fleet.timer_ms == T0 + 2 * STEP_MS + 5 * MINUTE_MS


def test_no_timer_without_a_change_to_come() -> None:
    fleet = Fleet(10, policy(behaviour=STEADY))
    fleet.run([100, 98, 101])
    assert fleet.timer_ms is None


def test_a_timer_is_cleared_when_the_load_comes_back() -> None:
    fleet = Fleet(10, policy(behaviour=STEADY))
    fleet.run([100, 20])
    assert fleet.timer_ms is not None
    effects = fleet.feed(sample(100, fleet.now_ms))
    assert ClearTimer() in effects
    assert fleet.state.timer_ms is None


def test_a_timer_decides_between_two_samples() -> None:
    fleet = Fleet(10, policy(behaviour=STEADY))
    fleet.run([100] + [20] * 19)
    fleet.run([20], step_ms=2 * STEP_MS)
    last = fleet.decisions[-1]
    assert last.desired == 2
    assert last.record.input["woken"]["due_ms"] == T0 + STEP_MS + 5 * MINUTE_MS
    assert last.record.metrics[0].want == 2


def test_a_timer_without_fresh_samples_never_scales_down() -> None:
    fleet = Fleet(10, policy(behaviour=STEADY))
    fleet.run([100, 20, 20, 20])
    fleet.advance(10 * MINUTE_MS)
    assert fleet.replicas == 10
    fleet.run([20])
    assert fleet.replicas == 2


def test_a_timer_that_was_replaced_does_nothing() -> None:
    fleet = Fleet(10, policy(behaviour=STEADY))
    fleet.run([100, 20])
    before = fleet.state
    much_later = fleet.now_ms + 10 * MINUTE_MS
    after, effects = decide(before, Woken(due_ms=T0 + 7), fleet.facts(), much_later)
    assert after is before
    assert effects == ()


def test_the_next_step_of_a_rate_is_timed_after_its_decision() -> None:
    doubling = policy(behaviour=Behaviour(scale_up=StepPolicy(period_ms=MINUTE_MS)))
    _, effects = decide(TargetState(), sample(500), facts(1, doubling), T0)
    assert [effect for effect in effects if isinstance(effect, SetTimer)] == [
        SetTimer(T0 + MINUTE_MS, "rate ends")
    ]


def test_the_next_step_in_panic_is_timed_by_the_period_of_panic() -> None:
    panic = PanicPolicy(threshold_percent=200, hold_ms=MINUTE_MS, percent=100, period_ms=20_000)
    slow = StepPolicy(instances=1, percent=0, period_ms=MINUTE_MS)
    doubling = policy(behaviour=Behaviour(scale_up=slow, panic=panic))
    _, effects = decide(TargetState(), sample(500), facts(1, doubling), T0)
    assert [effect for effect in effects if isinstance(effect, SetTimer)] == [
        SetTimer(T0 + 20_000, "panic ends")
    ]


def test_the_end_of_a_freeze_decides_what_was_pending_at_that_instant() -> None:
    fleet = Fleet(2, policy())
    fleet.run([20])
    fleet.frozen_until_ms = fleet.now_ms + 2 * STEP_MS + 4_000
    assert fleet.run([90, 90, 90]) == [2, 2, 2]
    last = fleet.decisions[-1]
    assert (last.current, last.desired, fleet.replicas) == (2, 9, 9)
    assert last.record.input["woken"]["due_ms"] == fleet.frozen_until_ms


def test_a_freeze_without_an_end_is_not_waited_for() -> None:
    fleet = Fleet(2, policy())
    fleet.frozen = True
    fleet.run([90, 90])
    assert (fleet.timer_ms, fleet.replicas) == (None, 2)
    fleet.frozen = False
    assert fleet.run([90]) == [9]
