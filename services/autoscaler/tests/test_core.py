"""The core as its shell sees it: when it speaks, when it is silent, and what it keeps."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inferbus_autoscaler.core import decide
from inferbus_autoscaler.events import Applied, Demanded, Woken
from inferbus_autoscaler.facts import (
    ApplyMode,
    Behaviour,
    Compat,
    PanicPolicy,
    PolicyFacts,
    StepPolicy,
)
from inferbus_autoscaler.outcomes import ClearTimer, Decide, Demand, SetTimer
from inferbus_autoscaler.state import TargetState
from inferbus_contracts.events.scaling import ApplyOutcome, Limiter, ScalingDemanded
from services.autoscaler.tests.builders import (
    KEY,
    MIX,
    STEP_MS,
    T0,
    WEBHOOK_DEFAULTS,
    Fleet,
    facts,
    mix_facts,
    mix_sample,
    policy,
    sample,
    target,
)

MINUTE_MS = 60_000
STEADY = Behaviour(scale_down=StepPolicy(period_ms=0, stabilisation_ms=5 * MINUTE_MS))


def desired(effects: tuple[object, ...]) -> list[int]:
    return [effect.data.desired for effect in effects if isinstance(effect, Decide)]


def test_the_first_sample_decides() -> None:
    _, effects = decide(TargetState(), sample(45), facts(3), T0)
    assert desired(effects) == [5]
    decided = next(effect for effect in effects if isinstance(effect, Decide))
    assert (decided.target, decided.data.current) == (KEY, 3)
    assert (decided.data.target_uid, decided.data.target_generation) == ("target-uid", 1)
    assert decided.data.apply == "auto"


def test_the_same_sample_again_changes_nothing_at_all() -> None:
    fleet = Fleet(5, policy())
    fleet.run([50, 50])
    before = fleet.state
    after, effects = decide(before, sample(50, fleet.now_ms), fleet.facts(), fleet.now_ms)
    assert after is before
    assert effects == ()


@pytest.mark.parametrize("load", [45, 50, 52])
def test_a_quiet_system_writes_nothing_but_a_decision_every_ten_minutes(load: float) -> None:
    """An hour of samples: the first decision and one for each ten minutes."""
    fleet = Fleet(5, policy(behaviour=WEBHOOK_DEFAULTS))
    fleet.run([load])
    writes = 0
    for _ in range(4 * 60 - 1):
        before = fleet.state
        fleet.run([load])
        writes += fleet.state is not before
    assert writes == len(fleet.decisions) - 1 == 5


def test_small_changes_of_load_are_quiet_too() -> None:
    fleet = Fleet(5, policy(behaviour=WEBHOOK_DEFAULTS))
    fleet.run([48.0])
    before = fleet.state
    fleet.run([48.1, 47.7, 48.3])
    assert fleet.state is before


def test_noise_around_a_whole_number_is_quiet() -> None:
    """9.8 to 10.2 replicas' worth of load: once rounded to ten, once held by the tolerance."""
    fleet = Fleet(10, policy(behaviour=WEBHOOK_DEFAULTS))
    fleet.run([100.0])
    before = fleet.state
    fleet.run([101.0, 98.0, 102.0, 99.0, 100.0])
    assert fleet.state is before
    assert len(fleet.decisions) == 1


def test_without_samples_nothing_is_repeated() -> None:
    fleet = Fleet(5, policy())
    fleet.sample(50)
    fleet.advance(60 * MINUTE_MS)
    assert len(fleet.decisions) == 1


def test_a_change_of_the_binding_limiter_is_told_though_the_number_stays() -> None:
    fleet = Fleet(5, policy(bounds=(1, 5)))
    fleet.run([50, 90])
    assert [d.record.binding for d in fleet.decisions] == [Limiter.NONE, Limiter.BOUNDS]


def test_no_second_decision_while_one_is_being_applied() -> None:
    fleet = Fleet(1, policy())
    fleet.answers = False
    fleet.run([50, 90, 20])
    assert [d.desired for d in fleet.decisions] == [5]
    effects = fleet.answer()
    assert desired(effects) == [2], "the answer lets the newest need through"


def test_a_decision_that_is_never_answered_is_made_again_after_a_while() -> None:
    fleet = Fleet(1, policy())
    fleet.answers = False
    fleet.run([50] * 41)
    assert [d.desired for d in fleet.decisions] == [5, 5]


def test_its_own_decision_is_the_current_number_until_the_answer() -> None:
    fleet = Fleet(1, policy())
    fleet.answers = False
    fleet.run([50, 51])
    assert fleet.replicas == 1
    fleet.answer()
    fleet.run([90])
    assert [(d.current, d.desired) for d in fleet.decisions] == [(1, 5), (5, 9)]


def test_an_old_observation_does_not_undo_a_newer_answer() -> None:
    fleet = Fleet(1, policy())
    fleet.sample(50)
    fleet.feed(sample(50, fleet.now_ms), generation=1, replicas=1)
    assert len(fleet.decisions) == 1
    assert fleet.decisions[0].desired == 5


def test_an_observation_of_the_same_generation_does_not_either() -> None:
    fleet = Fleet(1, policy())
    fleet.sample(50)
    fleet.feed(sample(50, fleet.now_ms), replicas=1)
    assert len(fleet.decisions) == 1


def test_a_newer_generation_is_the_current_number() -> None:
    """Somebody scaled by hand: decided again, from the newer generation."""
    fleet = Fleet(5, policy())
    fleet.sample(50)
    fleet.replicas, fleet.generation = 8, 7
    fleet.sample(50)
    last = fleet.decisions[-1]
    assert (last.current, last.desired, last.target_generation) == (8, 5, 7)


def test_a_conflict_is_decided_again_at_once_against_the_newer_generation() -> None:
    fleet = Fleet(3, policy())
    fleet.answers = False
    fleet.sample(50)
    fleet.replicas, fleet.generation = 4, 6
    effects = fleet.answer(ApplyOutcome.CONFLICT)
    assert desired(effects) == [5]
    last = fleet.decisions[-1]
    assert (last.current, last.target_generation) == (4, 6)


def test_a_conflict_whose_news_come_before_the_observation() -> None:
    """The answer knows the newer generation though the facts still have the old one."""
    fleet = Fleet(3, policy())
    fleet.answers = False
    fleet.sample(50)
    answer = Applied(
        target=KEY,
        decision_id="1",
        outcome=ApplyOutcome.CONFLICT,
        replicas=4,
        generation=6,
        uid="target-uid",
    )
    _, effects = decide(fleet.state, answer, fleet.facts(), fleet.now_ms)
    decided = next(effect.data for effect in effects if isinstance(effect, Decide))
    assert (decided.current, decided.desired, decided.target_generation) == (4, 5, 6)


@pytest.mark.parametrize("outcome", [ApplyOutcome.FAILED, ApplyOutcome.FROZEN])
def test_a_failure_is_tried_again_with_the_next_sample_and_not_before(
    outcome: ApplyOutcome,
) -> None:
    fleet = Fleet(3, policy())
    fleet.answers = False
    fleet.sample(50)
    assert fleet.answer(outcome) == ()
    fleet.run([50])
    assert [d.desired for d in fleet.decisions] == [5, 5]


def test_an_answer_to_another_decision_tells_the_number_and_nothing_else() -> None:
    fleet = Fleet(3, policy())
    fleet.answers = False
    fleet.sample(50)
    other = Applied(
        target=KEY,
        decision_id="of somebody else",
        outcome=ApplyOutcome.CONFLICT,
        replicas=3,
        generation=1,
        uid="target-uid",
    )
    assert fleet.feed(other) == ()
    assert fleet.state.decision is not None
    assert fleet.state.decision.applying


def test_an_answer_about_a_former_target_of_that_name_is_ignored() -> None:
    fleet = Fleet(3, policy())
    fleet.answers = False
    fleet.sample(50)
    before = fleet.state
    former = Applied(
        target=KEY,
        decision_id="1",
        outcome=ApplyOutcome.APPLIED,
        replicas=5,
        generation=9,
        uid="former",
    )
    after, effects = decide(before, former, fleet.facts(), T0)
    assert after is before
    assert effects == ()


@pytest.mark.parametrize("mode", [ApplyMode.ADVISE, ApplyMode.APPROVE])
def test_advice_is_given_once_and_the_target_stays_as_it_is(mode: ApplyMode) -> None:
    fleet = Fleet(3, policy(apply=mode))
    fleet.answers = False
    fleet.run([50, 50])
    fleet.answer(ApplyOutcome.AWAITING_APPROVAL)
    fleet.run([50, 70, 50])
    assert [(d.current, d.desired, d.apply) for d in fleet.decisions] == [
        (3, 5, mode.value),
        (3, 7, mode.value),
        (3, 5, mode.value),
    ]


def test_an_approved_decision_becomes_the_current_number() -> None:
    fleet = Fleet(3, policy(apply=ApplyMode.APPROVE))
    fleet.answers = False
    fleet.run([50])
    fleet.answer(ApplyOutcome.AWAITING_APPROVAL)
    fleet.answer(ApplyOutcome.APPLIED)
    fleet.run([70])
    assert (fleet.decisions[-1].current, fleet.decisions[-1].desired) == (5, 7)


def test_an_approved_decision_that_comes_too_late_is_put_forward_again() -> None:
    fleet = Fleet(3, policy(apply=ApplyMode.APPROVE))
    fleet.answers = False
    fleet.run([50])
    fleet.answer(ApplyOutcome.AWAITING_APPROVAL)
    fleet.replicas, fleet.generation = 4, 6
    fleet.answer(ApplyOutcome.CONFLICT)
    assert [(d.current, d.desired) for d in fleet.decisions] == [(3, 5), (4, 5)]


def test_a_freeze_is_told_and_ends_with_its_end() -> None:
    fleet = Fleet(3, policy())
    fleet.run([30])
    fleet.frozen = True
    fleet.run([50, 50])
    assert fleet.decisions[-1].record.binding is Limiter.FREEZE
    assert fleet.replicas == 3
    fleet.frozen = False
    fleet.run([50])
    assert fleet.replicas == 5


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


def test_demand_changes_nothing() -> None:
    fleet = Fleet(3, policy())
    fleet.sample(50)
    before = fleet.state
    assert decide(before, Demanded(sequence=4), fleet.facts(), T0 + 1) == (before, ())


@pytest.mark.parametrize(
    "without",
    [
        lambda given: replace(given, policy=None),
        lambda given: replace(given, targets=()),
        lambda given: replace(
            given, targets=tuple(replace(each, deleted=True) for each in given.targets)
        ),
    ],
)
def test_without_policy_or_target_all_is_forgotten(without: Any) -> None:
    fleet = Fleet(10, policy(behaviour=STEADY))
    fleet.run([100, 20])
    gone = without(fleet.facts())
    after, effects = decide(fleet.state, sample(20), gone, fleet.now_ms)
    assert after == TargetState()
    assert effects == (ClearTimer(),)
    assert decide(after, sample(20), gone, fleet.now_ms) == (after, ())


@pytest.mark.parametrize("who", ["policy", "target"])
def test_another_object_of_the_same_name_starts_afresh(who: str) -> None:
    fleet = Fleet(10, policy(behaviour=STEADY))
    fleet.run([150, 150, 100])
    fleet.replicas = 10
    given = fleet.facts()
    assert given.policy is not None
    if who == "policy":
        given = replace(given, policy=replace(given.policy, uid="another"))
    else:
        given = replace(given, targets=(target(10, uid="another"),))
    after, _ = decide(fleet.state, sample(20, fleet.now_ms), given, fleet.now_ms)
    assert after.history.recommended == 2
    assert after.history.most_recommended.past == ((fleet.now_ms, 10),)


def test_a_policy_new_to_a_running_target_undoes_nothing_at_once() -> None:
    fleet = Fleet(10, policy(behaviour=STEADY))
    assert fleet.run([20] * 20) == [10] * 20
    assert fleet.run([20] * 2)[-1] == 2


def test_switching_to_compat_and_back_mixes_no_histories() -> None:
    fleet = Fleet(10, policy(behaviour=STEADY))
    fleet.run([100] * 3)
    remembered = []
    for compat in (Compat.KTHENA_HEAD, Compat.NONE):
        fleet.policy = replace(fleet.policy, compat=compat)
        fleet.run([100])
        state = fleet.state
        remembered.append((state.compat is not None, state.history.recommended))
    assert remembered == [(True, None), (False, 10)]


def test_compat_skips_leave_no_trace() -> None:
    fleet = Fleet(5, policy(compat=Compat.KTHENA_HEAD))
    fleet.run([30])
    before = fleet.state
    after, effects = decide(before, sample(None, fleet.now_ms), fleet.facts(), fleet.now_ms)
    assert after is before
    assert effects == ()


def test_compat_explains_its_number_too() -> None:
    fleet = Fleet(5, policy(compat=Compat.KTHENA_HEAD, bounds=(1, 8)))
    fleet.run([200])
    record = fleet.decisions[0].record
    assert record.metrics[0].want == 20
    assert [(step.name, step.before, step.after) for step in record.limiters] == [
        (Limiter.BOUNDS, 20, 8),
        (Limiter.STABILISATION, 8, 8),
        (Limiter.RATE, 8, 8),
        (Limiter.BOUNDS, 8, 8),
    ]


def demanded(effects: tuple[object, ...]) -> list[ScalingDemanded]:
    return [effect.data for effect in effects if isinstance(effect, Demand)]


def test_a_mix_demands_its_total_from_the_optimizer() -> None:
    _, effects = decide(TargetState(), mix_sample((40.0, 40.0)), mix_facts((2, 2)), T0)
    (demand,) = demanded(effects)
    assert (demand.current, demand.replicas, demand.capacity) == (4, 8, 8.0)
    assert [(o.target, o.current, o.cost, o.max_replicas) for o in demand.targets] == [
        (MIX[0], 2, 100, 4),
        (MIX[1], 2, 60, 8),
    ]


def test_a_mix_counts_in_capacity_units() -> None:
    """Three H100 of 4 units and one A100: 13 units, of at most 24."""
    the_facts = mix_facts((3, 1), capacity=4.0)
    _, effects = decide(TargetState(), mix_sample((150.0, 10.0)), the_facts, T0)
    (demand,) = demanded(effects)
    assert (demand.current, demand.replicas, demand.capacity) == (13, 16, 16.0)


def test_a_mix_that_holds_demands_exactly_what_it_has() -> None:
    """12.5 units carry 12.2: neither 12 nor 13 may be asked for."""
    the_facts = mix_facts((3, 5), capacity=2.5)
    _, effects = decide(TargetState(), mix_sample((60.0, 62.0)), the_facts, T0)
    assert (demanded(effects)[0].current, demanded(effects)[0].capacity) == (12, 12.5)


def test_a_mix_that_is_unchanged_is_silent() -> None:
    the_facts = mix_facts((2, 2))
    state, _ = decide(TargetState(), mix_sample((20.0, 20.0)), the_facts, T0)
    later = T0 + STEP_MS
    again, effects = decide(state, mix_sample((20.0, 20.0), later), the_facts, later)
    assert again is state
    assert effects == ()


def test_the_optimizer_hears_of_a_mix_that_changed_under_it() -> None:
    the_facts = mix_facts((2, 2))
    state, _ = decide(TargetState(), mix_sample((20.0, 20.0)), the_facts, T0)
    fewer = replace(
        the_facts, targets=(replace(the_facts.targets[0], schedulable=2), the_facts.targets[1])
    )
    later = T0 + STEP_MS
    _, effects = decide(state, mix_sample((20.0, 20.0), later), fewer, later)
    assert demanded(effects)[0].targets[0].schedulable == 2


def test_a_target_of_a_mix_that_does_not_exist_is_left_out() -> None:
    the_facts = mix_facts((2, 2))
    only = replace(the_facts, targets=the_facts.targets[1:])
    _, effects = decide(TargetState(), mix_sample((0.0, 40.0)), only, T0)
    (demand,) = demanded(effects)
    assert [option.target for option in demand.targets] == [MIX[1]]
    assert demand.replicas == 4


def test_a_target_of_a_mix_that_was_made_anew_is_as_its_spec_says() -> None:
    the_facts = mix_facts((2, 2))
    state, _ = decide(TargetState(), mix_sample((20.0, 20.0)), the_facts, T0)
    answer = Applied(
        target=MIX[0],
        decision_id="of the optimizer",
        outcome=ApplyOutcome.APPLIED,
        replicas=4,
        generation=9,
        uid="target-uid",
    )
    state, _ = decide(state, answer, the_facts, T0 + 1)
    anew = (replace(the_facts.targets[0], uid="another"), the_facts.targets[1])
    for seen, replicas in [(the_facts, 4), (replace(the_facts, targets=anew), 2)]:
        _, effects = decide(state, mix_sample((20.0, 20.0)), seen, T0 + 2)
        assert demanded(effects)[0].targets[0].current == replicas


def test_upstream_leaves_a_mix_alone_while_a_target_is_missing() -> None:
    the_facts = mix_facts((2, 2), compat=Compat.KTHENA_HEAD)
    only = replace(the_facts, targets=the_facts.targets[1:])
    assert decide(TargetState(), mix_sample((0.0, 40.0)), only, T0)[1] == ()


def test_upstream_s_total_of_a_mix() -> None:
    """T24: two targets at 38 and 45 give 9."""
    the_facts = mix_facts((3, 3), compat=Compat.KTHENA_HEAD)
    _, effects = decide(TargetState(), mix_sample((38.0, 45.0)), the_facts, T0)
    assert demanded(effects)[0].replicas == 9


def test_version_0_1_is_blind_for_mixes() -> None:
    the_facts = mix_facts((3, 3), compat=Compat.KTHENA_V01)
    assert decide(TargetState(), mix_sample((38.0, 45.0)), the_facts, T0)[1] == ()


loads = st.none() | st.floats(0, 2000)
samples = st.fixed_dictionaries(
    {
        "load": loads,
        "missing_pods": st.integers(0, 1),
        "unready_pods": st.integers(0, 3),
        "failed_pods": st.integers(0, 1),
    }
)
compats = st.sampled_from(Compat)
behaviours = st.sampled_from([Behaviour(), WEBHOOK_DEFAULTS, STEADY])


@settings(max_examples=60)
@given(st.lists(samples, min_size=1, max_size=25), behaviours, compats, st.integers(0, 60))
def test_the_bounds_always_hold(
    story: list[dict[str, Any]], behaviour: Behaviour, compat: Compat, start: int
) -> None:
    fleet = Fleet(start, policy(bounds=(2, 40), behaviour=behaviour, compat=compat))
    for each in story:
        fleet.sample(each.pop("load"), **each)
        fleet.advance(STEP_MS)
    assert all(2 <= decided.desired <= 40 for decided in fleet.decisions)


@settings(max_examples=60)
@given(st.lists(samples, min_size=1, max_size=25), behaviours, st.integers(2, 40))
def test_partial_data_never_scales_down(
    story: list[dict[str, Any]], behaviour: Behaviour, start: int
) -> None:
    fleet = Fleet(start, policy(bounds=(2, 40), behaviour=behaviour))
    for each in story:
        before = fleet.replicas
        load = each.pop("load")
        fleet.sample(load, **each)
        if load is None or each["missing_pods"]:
            assert fleet.replicas >= before
        fleet.advance(0)


@settings(max_examples=60)
@given(st.lists(samples, min_size=1, max_size=15), behaviours, compats)
def test_the_same_input_gives_the_same_bytes(
    story: list[dict[str, Any]], behaviour: Behaviour, compat: Compat
) -> None:
    the_policy: PolicyFacts = policy(behaviour=behaviour, compat=compat)

    def told() -> list[bytes]:
        fleet = Fleet(5, the_policy)
        for each in story:
            rest = {name: value for name, value in each.items() if name != "load"}
            fleet.sample(each["load"], **rest)
            fleet.advance(STEP_MS)
        return [decided.to_json() for decided in fleet.decisions]

    assert told() == told()


@settings(max_examples=60)
@given(st.lists(samples, min_size=1, max_size=15), behaviours)
def test_a_repeated_sample_changes_nothing(
    story: list[dict[str, Any]], behaviour: Behaviour
) -> None:
    fleet = Fleet(5, policy(behaviour=behaviour))
    for each in story:
        fleet.sample(each.pop("load"), **each)
        fleet.advance(STEP_MS)
    last = sample(float(len(story)), fleet.now_ms)
    fleet.feed(last)
    before = fleet.state
    after, effects = decide(before, last, fleet.facts(), fleet.now_ms)
    assert after is before
    assert effects == ()
