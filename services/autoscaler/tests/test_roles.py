"""Two roles decided about together: the table of autoscaling spec 6.4, limits, answers."""

from dataclasses import replace

import pytest

from inferbus_autoscaler.core import decide, recompute
from inferbus_autoscaler.events import Sampled
from inferbus_autoscaler.facts import Behaviour, MetricTarget, PanicPolicy, StepPolicy
from inferbus_autoscaler.outcomes import Decide
from inferbus_autoscaler.state import TargetState
from inferbus_contracts.deciding import SetTimer
from inferbus_contracts.events.scaling import ApplyOutcome, Limiter, Mode, ScalingDecided
from inferbus_contracts.resources.annotations import ApplyMode, Compat
from services.autoscaler.tests.builders import STEP_MS, T0
from services.autoscaler.tests.role_builders import (
    DECODE,
    PREFILL,
    ROLES,
    Pair,
    RoleFleet,
    pair_policy,
    reading,
)

P, D, LIMITS = (0, 8), (0, 16), ("0.25", "1")
HEAD = Compat.KTHENA_HEAD

TABLE: dict[str, tuple[Pair, Pair, Pair, tuple[str, str] | None, Pair, Pair, Pair]] = {
    # name: needs, bounds of prefill and decode, ratio, pair before; upstream's pair, and ours
    "as_t87": ((2, 4), P, D, LIMITS, (1, 1), (2, 4), (2, 4)),
    "as_t88": ((1, 8), P, D, LIMITS, (1, 1), (2, 8), (2, 8)),
    "as_t89": ((6, 2), P, D, LIMITS, (1, 1), (6, 6), (6, 6)),
    "as_t90a": ((0, 4), P, D, LIMITS, (1, 1), (1, 4), (1, 4)),
    "as_t90b": ((4, 0), P, D, LIMITS, (1, 1), (4, 4), (4, 4)),
    "as_t91": ((0, 0), P, D, LIMITS, (1, 1), (0, 0), (0, 0)),
    "as_t92": ((2, 20), (0, 3), (0, 20), LIMITS, (1, 1), (3, 12), (3, 12)),
    "as_t93": ((8, 2), (1, 8), (1, 3), LIMITS, (1, 1), (3, 3), (3, 3)),
    "as_t94": ((3, 13), P, D, LIMITS, (1, 1), (4, 13), (4, 13)),
    "as_t95": ((12, 4), P, D, LIMITS, (1, 1), (8, 8), (8, 8)),
    "as_t96": ((1, 3), (1, 10), (1, 10), ("0.5", "0.5"), (1, 2), (2, 3), (2, 4)),
    "as_t97": ((1, 2), (1, 10), (1, 10), ("0.4", "0.45"), (1, 2), (1, 3), (2, 5)),
    "as_t98": ((1, 25), (0, 30), (0, 100), ("0.28", "1"), (1, 1), (8, 25), (7, 25)),
    "as_t99": ((2, 9), (2, 2), (1, 16), ("0.5", "1"), (2, 2), (2, 4), (2, 4)),
    "as_t100": ((10, 4), P, D, None, (1, 1), (8, 4), (8, 4)),
    "as_t101": ((6, 2), (1, 8), (2, 16), LIMITS, (1, 2), (6, 6), (6, 6)),
}


@pytest.mark.parametrize("compat", [None, HEAD])
@pytest.mark.parametrize("case", TABLE)
def test_table(case: str, compat: Compat | None) -> None:
    needs, prefill, decode, ratio, before, upstream, ours = TABLE[case]
    fleet = RoleFleet(before, pair_policy(prefill, decode, ratio, compat=compat))
    assert fleet.sample(*needs) == (ours if compat is None else upstream)


@pytest.mark.parametrize(("compat", "expected"), [(None, (2, 5)), (HEAD, (1, 3))])
def test_as_d13_the_repair_of_one_bound_does_not_break_the_other(
    compat: Compat | None, expected: Pair
) -> None:
    """T97: 1/3 is below 0.4."""
    fleet = RoleFleet((1, 2), pair_policy((1, 10), (1, 10), ("0.4", "0.45"), compat=compat))
    assert fleet.sample(1, 2) == expected


@pytest.mark.parametrize(("compat", "expected"), [(None, (7, 25)), (HEAD, (8, 25))])
def test_as_d13_a_ratio_is_exact(compat: Compat | None, expected: Pair) -> None:
    """T98: 0.28 · 25 is 7.000000000000001 in float64."""
    fleet = RoleFleet((1, 1), pair_policy((0, 30), (0, 100), ("0.28", "1"), compat=compat))
    assert fleet.sample(1, 25) == expected


@pytest.mark.parametrize(("compat", "expected"), [(None, (2, 4)), (HEAD, (3, 6))])
def test_as_d13_the_ratio_takes_no_role_past_its_rate(
    compat: Compat | None, expected: Pair
) -> None:
    """Three prefillers need six decoders, and one more of each is all that may be added."""
    one_more = Behaviour(scale_up=StepPolicy(instances=1, percent=0, period_ms=STEP_MS))
    strict = pair_policy((1, 8), (1, 16), ("0.5", "0.5"), behaviour=one_more, compat=compat)
    assert RoleFleet((2, 4), strict).sample(5, 4) == expected


def test_as_t134_roles_that_cannot_be_in_proportion_stay_and_it_is_said() -> None:
    fleet = RoleFleet((1, 2), pair_policy((1, 2), (2, 3), ("0.55", "0.55")))
    assert fleet.sample(2, 3) == (1, 2)
    step = fleet.last(PREFILL).record.limiters[-1]
    assert (step.name, step.before, step.after) == (Limiter.RATIO, 2, 1)
    assert step.detail == (
        "prefill/decode 0.55 to 0.55: 1/2, as no pair within the bounds is in proportion"
    )
    assert fleet.last(PREFILL).record.binding is Limiter.RATIO


@pytest.mark.parametrize(("compat", "expected"), [(None, (2, 4)), (HEAD, (6, 12))])
def test_as_d08_the_replicas_of_a_role_are_those_of_one_group(
    compat: Compat | None, expected: Pair
) -> None:
    """Three groups share the load; upstream gives each of them replicas for all of it."""
    fleet = RoleFleet((1, 1), pair_policy(compat=compat))
    fleet.groups = 3
    assert fleet.sample(6, 12) == expected
    (metric,) = fleet.last(DECODE).record.metrics
    assert (metric.value, metric.target, metric.want) == (12, 1, expected[1])
    assert metric.detail == ("" if compat else "shared by 3 groups")


def test_both_roles_are_decided_about_at_once_and_each_says_why() -> None:
    fleet = RoleFleet((1, 2), pair_policy())
    fleet.answers = False
    effects = fleet.feed(
        Sampled(taken_at_ms=T0, readings=(reading(DECODE, 2), reading(PREFILL, 6)))
    )
    decided = {effect.target: effect.data for effect in effects if isinstance(effect, Decide)}
    assert {key: (one.current, one.desired) for key, one in decided.items()} == {
        DECODE: (2, 6),
        PREFILL: (1, 6),
    }
    assert decided[DECODE].companions == [PREFILL]
    assert decided[PREFILL].companions == [DECODE]
    grown = decided[DECODE].record
    assert (grown.target, grown.binding) == (DECODE, Limiter.RATIO)
    assert (grown.limiters[-1].before, grown.limiters[-1].after) == (2, 6)
    assert decided[PREFILL].record.binding is Limiter.NONE
    for one in decided.values():
        assert recompute(ScalingDecided.from_json(one.to_json()).record) == one.to_json()


def test_while_one_role_s_decision_is_on_its_way_none_is_made_about_the_other() -> None:
    fleet = RoleFleet((2, 4), pair_policy())
    fleet.answers = False
    fleet.sample(4, 8)
    assert len(fleet.decisions) == 2
    fleet.answer(DECODE, fleet.last(DECODE))
    fleet.advance()
    fleet.sample(4, 16)
    assert len(fleet.decisions) == 2, "prefill's answer is still awaited"
    fleet.answer(PREFILL, fleet.last(PREFILL))
    assert [key for key, _ in fleet.decisions[2:]] == [DECODE]
    assert fleet.last(DECODE).desired == 16


def test_an_answer_about_one_role_says_of_which_generation_the_object_is() -> None:
    """Both were decided for the first generation; the facts haven't heard of the next two yet."""
    fleet = RoleFleet((2, 4), pair_policy())
    fleet.sample(4, 8)
    assert [one.target_generation for _, one in fleet.decisions] == [1, 1]
    assert fleet.generation == 3
    fleet.generation = 1
    fleet.advance()
    fleet.answers = False
    fleet.sample(4, 16)
    assert fleet.last(DECODE).target_generation == 3


@pytest.mark.parametrize("outcome", [ApplyOutcome.CONFLICT, ApplyOutcome.FAILED])
def test_a_role_whose_decision_came_to_nothing_is_decided_about_again(
    outcome: ApplyOutcome,
) -> None:
    fleet = RoleFleet((2, 4), pair_policy())
    fleet.answers = False
    fleet.sample(4, 8)
    fleet.answer(PREFILL, fleet.last(PREFILL))
    fleet.answers = True
    fleet.answer(DECODE, fleet.last(DECODE), outcome)
    fleet.advance()
    assert fleet.sample(4, 8) == (4, 8)


def test_a_fixed_role_needs_no_metrics() -> None:
    fleet = RoleFleet((2, 2), pair_policy((2, 2), (1, 16), own={PREFILL: ()}))
    assert fleet.sample(None, 6) == (2, 6)
    assert fleet.sample(None, 12) == (2, 8), "two prefillers are enough for eight"
    assert fleet.last(PREFILL).record.limiters[0].detail == "fixed at 2"


def test_a_fixed_role_that_was_scaled_by_hand_is_brought_back() -> None:
    fleet = RoleFleet((5, 6), pair_policy((2, 2), (1, 16), own={PREFILL: ()}))
    assert fleet.sample(None, 6) == (2, 6)


def test_each_role_follows_its_own_metrics() -> None:
    own = {PREFILL: (MetricTarget(name="load", target=3.0),)}
    assert RoleFleet((1, 1), pair_policy(own=own)).sample(6, 8) == (2, 8)


def test_partial_data_takes_nothing_from_a_role_not_even_for_the_proportion() -> None:
    """Two prefillers carry eight decoders; one of sixteen didn't answer."""
    fleet = RoleFleet((4, 16), pair_policy((0, 8), (0, 16)))
    assert fleet.sample(2, 8, missing_pods=1) == (4, 16)
    assert fleet.sample(2, 8) == (2, 8)


def test_partial_data_about_one_role_does_not_keep_the_other_from_growing() -> None:
    fleet = RoleFleet((4, 8), pair_policy())
    assert fleet.sample(6, 1, missing_pods=1) == (6, 8)


def test_the_proportion_takes_nothing_that_stabilisation_keeps() -> None:
    """Sixteen were needed within the window: prefill stays at what they need."""
    down = StepPolicy(instances=0, percent=100, period_ms=0, stabilisation_ms=4 * STEP_MS)
    fleet = RoleFleet((4, 16), pair_policy(behaviour=Behaviour(scale_down=down)))
    fleet.sample(4, 16)
    fleet.advance()
    seen = fleet.run([(1, 4)] * 6)
    assert seen[:3] == [(4, 16)] * 3
    assert seen[-1] == (1, 4)
    assert all(decode <= 4 * prefill for prefill, decode in seen)


def test_roles_grow_at_the_pace_of_the_slower_one_and_go_on_by_themselves() -> None:
    """Twice as many decoders as prefillers, and two more of each per minute."""
    up = StepPolicy(instances=2, percent=0, period_ms=60_000)
    strict = pair_policy((1, 20), (1, 40), ("0.5", "0.5"), behaviour=Behaviour(scale_up=up))
    fleet = RoleFleet((2, 4), strict)
    assert fleet.sample(5, 10) == (3, 6)
    fleet.settings = replace(fleet.settings, stale_ms=600_000)
    fleet.advance(59_999)
    assert fleet.pair == (3, 6)
    fleet.advance(1)
    assert fleet.pair == (4, 8), "the timer was set for the end of decode's period"


def test_panic_of_one_role_takes_the_other_along() -> None:
    hold = PanicPolicy(threshold_percent=200, hold_ms=60_000)
    slow = StepPolicy(instances=1, percent=0, period_ms=60_000)
    fleet = RoleFleet(
        (2, 4), pair_policy(behaviour=Behaviour(scale_up=slow, panic=hold), ratio=("0.5", "1"))
    )
    assert fleet.sample(6, 12) == (6, 12)
    assert fleet.last(PREFILL).mode is Mode.PANIC


def test_a_freeze_holds_both_and_its_end_lets_both_go() -> None:
    fleet = RoleFleet((1, 2), pair_policy())
    fleet.frozen = True
    assert fleet.sample(6, 12) == (1, 2)
    assert {fleet.last(key).record.binding for key in ROLES} == {Limiter.FREEZE}
    fleet.frozen = False
    fleet.advance()
    assert fleet.sample(6, 12) == (6, 12)


def test_the_end_of_a_freeze_decides_about_both_at_that_instant() -> None:
    fleet = RoleFleet((1, 2), pair_policy())
    fleet.frozen_until_ms = fleet.now_ms + 4_000
    effects = fleet.feed(
        Sampled(taken_at_ms=fleet.now_ms, readings=(reading(DECODE, 12), reading(PREFILL, 6)))
    )
    assert SetTimer(fleet.frozen_until_ms, "freeze ends") in effects
    assert fleet.pair == (1, 2)
    fleet.advance(5_000)
    assert fleet.pair == (6, 12)


def test_both_come_back_from_zero_together() -> None:
    fleet = RoleFleet((0, 0), pair_policy())
    assert fleet.sample(0, 0) == (0, 0)
    assert fleet.sample(0, 6) == (2, 6)
    assert fleet.sample(0, 0) == (0, 0)


def test_advice_is_given_about_both_and_changes_neither() -> None:
    fleet = RoleFleet((1, 2), pair_policy(apply=ApplyMode.ADVISE))
    fleet.answers = False
    fleet.run([(6, 2), (6, 2)])
    assert [(key, one.desired, one.apply) for key, one in fleet.decisions] == [
        (DECODE, 6, "advise"),
        (PREFILL, 6, "advise"),
    ]


def test_nothing_is_decided_while_a_role_does_not_exist() -> None:
    fleet = RoleFleet((1, 2), pair_policy())
    both = fleet.facts()
    one = replace(both, targets=both.targets[:1])
    sampled = Sampled(taken_at_ms=T0, readings=(reading(DECODE, 9),))
    assert decide(TargetState(), sampled, one, T0) == (TargetState(), ())


def test_upstream_skips_the_cycle_where_one_role_has_no_value() -> None:
    fleet = RoleFleet((1, 2), pair_policy(compat=HEAD))
    assert fleet.sample(6, None) == (1, 2)
    assert fleet.state.roles == ()
    assert fleet.sample(6, 2) == (6, 6)


def test_upstream_s_windows_never_hear_of_the_repair() -> None:
    """5.1: what is recorded is what each role came to before it."""
    down = StepPolicy(instances=0, percent=100, period_ms=60_000)
    fleet = RoleFleet((1, 1), pair_policy(compat=HEAD, behaviour=Behaviour(scale_down=down)))
    fleet.sample(4, 0)
    assert fleet.pair == (4, 4)
    (decode,) = [role for role in fleet.state.roles if role.target == DECODE]
    assert decode.compat is not None
    last = decode.compat.loop.windows.rate_down.last
    assert last is not None
    assert last[1] == 0
