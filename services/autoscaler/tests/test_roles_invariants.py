"""Roles decided about together: records, states and policies, and what holds for any story."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inferbus_autoscaler.core import decide, recompute
from inferbus_autoscaler.events import Sampled
from inferbus_autoscaler.facts import Behaviour, MetricTarget, PanicPolicy, StepPolicy
from inferbus_autoscaler.policy_check import fitted, problems_of
from inferbus_autoscaler.policy_roles import band
from inferbus_autoscaler.state import TargetState
from inferbus_autoscaler.worst_record import worst_record_bytes
from inferbus_contracts.deciding import MOST_RECORD_BYTES
from inferbus_contracts.events.scaling import Limiter, ScalingDecided
from inferbus_contracts.resources.annotations import Compat
from services.autoscaler.tests.builders import WEBHOOK_DEFAULTS
from services.autoscaler.tests.role_builders import (
    DECODE,
    PREFILL,
    Pair,
    RoleFleet,
    pair_policy,
    reading,
)

HEAD = Compat.KTHENA_HEAD

CAREFUL = Behaviour(
    scale_down=StepPolicy(instances=2, percent=0, period_ms=30_000, stabilisation_ms=60_000),
    scale_up=StepPolicy(instances=1, percent=0, period_ms=20_000, stabilisation_ms=15_000),
)
PANICKY = replace(CAREFUL, panic=PanicPolicy(hold_ms=45_000, percent=100, period_ms=15_000))
behaviours = st.sampled_from([Behaviour(), WEBHOOK_DEFAULTS, CAREFUL, PANICKY])
loads = st.none() | st.floats(0, 30) | st.integers(0, 12)
samples = st.tuples(loads, loads, st.integers(0, 1))


@st.composite
def bounds(draw: st.DrawFn) -> Pair:
    low = draw(st.integers(1, 5))
    return low, low + draw(st.integers(0, 12))


@st.composite
def ratios(draw: st.DrawFn) -> tuple[str, str]:
    least, most = sorted(draw(st.tuples(st.integers(0, 40), st.integers(1, 40))))
    return f"{least * 50}m", f"{most * 50}m"


@st.composite
def fleets(draw: st.DrawFn) -> RoleFleet:
    prefill, decode = draw(bounds()), draw(bounds())
    start = (draw(st.integers(0, 20)), draw(st.integers(0, 20)))
    return RoleFleet(
        start, pair_policy(prefill, decode, draw(ratios()), behaviour=draw(behaviours))
    )


def steps_of(decided: ScalingDecided) -> dict[Limiter, tuple[int, int]]:
    """Before and after by limiter, the first of each name."""
    found: dict[Limiter, tuple[int, int]] = {}
    for step in decided.record.limiters:
        found.setdefault(step.name, (step.before, step.after))
    return found


@settings(max_examples=150)
@given(fleets(), st.lists(samples, min_size=1, max_size=12))
def test_any_story_keeps_bounds_proportion_windows_and_data(
    fleet: RoleFleet, story: list[tuple[Any, Any, int]]
) -> None:
    assert fleet.policy.ratio is not None
    limits = {member.key: member for member in fleet.policy.targets}
    proportion = band(fleet.policy.ratio)
    for prefill, decode, missing in story:
        before = dict(fleet.replicas)
        since = len(fleet.decisions)
        fleet.sample(prefill, decode, missing_pods=missing)
        for key, decided in fleet.decisions[since:]:
            member, steps = limits[key], steps_of(decided)
            low, high = member.min_replicas, member.max_replicas
            assert low <= decided.desired <= high
            assert recompute(ScalingDecided.from_json(decided.to_json()).record) == (
                decided.to_json()
            )
            kept = steps.get(Limiter.STABILISATION, (0, low))[1]
            assert decided.desired >= min(kept, decided.current, high)
            if "as " not in decided.record.limiters[-1].detail:
                assert proportion.place(*fleet.pair) == 0
        if missing or decode is None:
            assert fleet.replicas[DECODE] >= min(before[DECODE], limits[DECODE].max_replicas)
        fleet.advance()


@settings(max_examples=60)
@given(fleets(), st.lists(samples, min_size=1, max_size=8))
def test_a_repeated_sample_of_roles_changes_nothing(
    fleet: RoleFleet, story: list[tuple[Any, Any, int]]
) -> None:
    for prefill, decode, missing in story:
        fleet.sample(prefill, decode, missing_pods=missing)
        fleet.advance()
    last = Sampled(taken_at_ms=fleet.now_ms, readings=(reading(DECODE, 3.0), reading(PREFILL, 2.0)))
    fleet.feed(last)
    pair = fleet.pair
    fleet.feed(last)  # another limiter may bind now that the number is what it is
    assert fleet.pair == pair
    before = fleet.state
    after, effects = decide(before, last, fleet.facts(), fleet.now_ms)
    assert after is before
    assert effects == ()


@settings(max_examples=40)
@given(fleets(), st.lists(samples, min_size=1, max_size=8))
def test_upstream_s_cycles_give_the_same_bytes_from_their_records(
    fleet: RoleFleet, story: list[tuple[Any, Any, int]]
) -> None:
    fleet.under(compat=HEAD)
    for prefill, decode, missing in story:
        fleet.sample(prefill, decode, missing_pods=missing)
        fleet.advance()
    for _, decided in fleet.decisions:
        assert recompute(ScalingDecided.from_json(decided.to_json()).record) == decided.to_json()


def test_the_proportion_waits_for_what_stabilisation_keeps() -> None:
    """Three prefillers carry twelve decoders; sixteen are kept until the window ends."""
    down = StepPolicy(instances=0, percent=100, period_ms=0, stabilisation_ms=60_000)
    steady = pair_policy((1, 8), (1, 16), behaviour=Behaviour(scale_down=down))
    fleet = RoleFleet((4, 16), steady)
    fleet.sample(4, 16)
    fleet.advance()
    fleet.policy = replace(
        fleet.policy,
        targets=tuple(
            replace(member, max_replicas=3) if member.key == PREFILL else member
            for member in fleet.policy.targets
        ),
    )
    seen = fleet.run([(1, 4)] * 5)
    assert seen == [(3, 16)] * 4 + [(1, 4)]
    held = [one for key, one in fleet.decisions if key == PREFILL][-2]
    assert held.record.limiters[-1].detail == (
        "prefill/decode 0.25 to 1: 3/16, as every pair in proportion lacks replicas that are needed"
    )


def test_a_state_of_roles_is_the_same_after_the_log() -> None:
    fleet = RoleFleet((1, 2), pair_policy(behaviour=WEBHOOK_DEFAULTS))
    fleet.run([(6, 2), (1, 8), (None, 3), (0, 0)])
    assert TargetState.from_dict(fleet.state.to_dict()) == fleet.state


@pytest.mark.parametrize("compat", [None, HEAD])
def test_records_of_roles_stay_below_16_kb(compat: Compat | None) -> None:
    both = StepPolicy(
        instances=1, percent=0, period_ms=1_800_000, select="And", stabilisation_ms=1_800_000
    )
    longest = Behaviour(scale_down=both, scale_up=both)
    given = fitted(pair_policy((1, 500), (1, 500), compat=compat, behaviour=longest))
    fleet = RoleFleet((250, 250), given, repeat_ms=0)
    for index in range(130):
        fleet.sample(400 - index, 400 - index)
        fleet.advance()
    sizes = [len(one.record.to_json()) for _, one in fleet.decisions]
    assert max(sizes) <= worst_record_bytes(given) <= MOST_RECORD_BYTES


@pytest.mark.parametrize(
    ("ratio", "value"),
    [(("1", "0.5"), "1 to 0.5"), (("-1", "0.5"), "-1 to 0.5"), (("0", "0"), "0")],
)
def test_a_ratio_that_makes_no_sense_is_told(ratio: tuple[str, str], value: str) -> None:
    (problem,) = problems_of(pair_policy(ratio=ratio))
    assert problem.field == "ratioConstraint"
    assert value in str(problem.value)


def test_a_ratio_of_a_role_that_is_not_scaled_is_told() -> None:
    given = pair_policy()
    assert given.ratio is not None
    other = replace(given, ratio=replace(given.ratio, numerator="ModelServing/default/llm/other"))
    (problem,) = problems_of(other)
    assert problem.field == "ratioConstraint"


def test_metrics_of_a_role_are_checked_with_their_place() -> None:
    own = {PREFILL: (MetricTarget(name="load", target=0.0),)}
    (problem,) = problems_of(pair_policy(own=own))
    assert problem.field == "targets[1].metrics[0].targetValue"
