"""Defects of the reference, by number: fixed by default, still there in the compat modes.

Each test runs the same story twice. Where a defect has no compat counterpart, the line whose change
brings it back is named.
"""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from inferbus_autoscaler.core import decide
from inferbus_autoscaler.facts import Behaviour, PanicPolicy, PolicyFacts, StepPolicy
from inferbus_autoscaler.outcomes import Demand
from inferbus_autoscaler.state import TargetState
from inferbus_contracts.events.metrics import MetricKind
from inferbus_contracts.events.scaling import Mode
from inferbus_contracts.resources.annotations import Compat
from services.autoscaler.tests.builders import (
    FREE,
    STEP_MS,
    T0,
    WEBHOOK_DEFAULTS,
    Fleet,
    facts,
    metric,
    mix_facts,
    mix_sample,
    policy,
    sample,
)

DEFAULT, HEAD, V01 = None, Compat.KTHENA_HEAD, Compat.KTHENA_V01


def under(compat: Compat | None, the_policy: PolicyFacts) -> PolicyFacts:
    return replace(the_policy, compat=compat)


def replicas(
    compat: Compat | None,
    start: int,
    loads: Sequence[float | None],
    the_policy: PolicyFacts,
    step_ms: int = STEP_MS,
) -> list[int]:
    return Fleet(start, under(compat, the_policy)).run(loads, step_ms)


STEADY = policy(behaviour=Behaviour(scale_down=StepPolicy(period_ms=0, stabilisation_ms=60_000)))


@pytest.mark.parametrize(("compat", "last"), [(DEFAULT, 2), (HEAD, 2), (V01, 10)])
def test_as_d01_windows_hold_recommendations_not_what_they_were_limited_to(
    compat: Compat | None, last: int
) -> None:
    """T48, T49: with the limited value in the window, it never scales down."""
    assert replicas(compat, 10, [100] * 3 + [20] * 40, STEADY)[-1] == last


@pytest.mark.parametrize(("compat", "expected"), [(DEFAULT, 1), (HEAD, 10)])
def test_as_d02_the_band_is_around_the_current_number(compat: Compat | None, expected: int) -> None:
    """T4: ten replicas stay up though one carries the load."""
    assert replicas(compat, 10, [10], policy()) == [expected]


@pytest.mark.parametrize(("compat", "expected"), [(DEFAULT, 10), (HEAD, 11)])
def test_as_d02_one_percent_more_load_changes_nothing(compat: Compat | None, expected: int) -> None:
    """T7: no hysteresis, flapping by one."""
    assert replicas(compat, 10, [101], policy()) == [expected]


@pytest.mark.parametrize(("compat", "expected"), [(DEFAULT, 5), (HEAD, 2)])
def test_as_d03_an_average_over_its_target_scales_up(compat: Compat | None, expected: int) -> None:
    """T28: upstream scales down under overload."""
    the_policy = under(compat, policy(metrics={"load": 80.0}))
    average = sample([metric(95.0, kind=MetricKind.EXTERNAL_AVERAGE)])
    fleet = Fleet(4, the_policy)
    fleet.feed(average, ready=4)
    assert fleet.replicas == expected


@pytest.mark.parametrize(("compat", "expected"), [(DEFAULT, 20), (HEAD, 10)])
def test_as_d04_a_failed_pod_does_not_freeze_its_target(
    compat: Compat | None, expected: int
) -> None:
    fleet = Fleet(10, under(compat, policy()))
    assert fleet.sample(200, failed_pods=1) == expected


@pytest.mark.parametrize(("compat", "expected"), [(DEFAULT, 4), (V01, 10)])
def test_as_d05_an_unready_pod_does_not_either(compat: Compat | None, expected: int) -> None:
    fleet = Fleet(10, under(compat, policy()))
    assert fleet.sample(40, ready_pods=8, unready_pods=2) == expected


def test_as_d05_a_replica_that_lost_its_readiness_is_not_taken_away_with_its_load() -> None:
    """Else its load would vanish with it."""
    fleet = Fleet(10, policy())
    fleet.feed(sample(40, ready_pods=8, unready_pods=2), ready=8, unready=2)
    assert fleet.replicas == 6


@pytest.mark.parametrize(("compat", "expected"), [(DEFAULT, 1), (HEAD, 2)])
def test_as_d12_a_target_without_replicas_adds_no_load(
    compat: Compat | None, expected: int
) -> None:
    """T21: upstream counts the empty target as one that carries its share."""
    the_facts = mix_facts((3, 0), compat=compat)
    _, effects = decide(TargetState(), mix_sample((5.0, None)), the_facts, T0)
    demand = next(effect.data for effect in effects if isinstance(effect, Demand))
    assert demand.replicas == expected


@pytest.mark.parametrize(("load", "expected"), [(45, 5), (90, 9), (20, 2)])
def test_as_d05_starting_replicas_are_capacity_to_come(load: float, expected: int) -> None:
    """They aren't asked for once more."""
    fleet = Fleet(5, policy())
    fleet.feed(sample(load, ready_pods=2, unready_pods=3), ready=2, starting=3)
    assert fleet.replicas == expected


def test_as_d10_partial_data_never_scales_down() -> None:
    """Mutant: `need.known` for `need.possible` in policy_limits."""
    assert Fleet(10, policy()).sample(20, missing_pods=1) == 10


def test_as_d10_no_data_never_scales_down() -> None:
    assert Fleet(10, policy()).sample(None, ready_pods=0) == 10


@pytest.mark.parametrize(("compat", "expected"), [(DEFAULT, 20), (HEAD, 10)])
def test_as_d10_partial_data_scales_up(compat: Compat | None, expected: int) -> None:
    fleet = Fleet(10, under(compat, policy()))
    assert fleet.sample(200, missing_pods=1) == expected


def test_as_d10_a_value_that_is_no_number_never_scales_down() -> None:
    fleet = Fleet(10, policy(metrics={"load": 10.0, "other": 10.0}))
    fleet.feed(sample([metric(20.0), metric(None, "other")]))
    assert fleet.replicas == 10


@pytest.mark.parametrize(("compat", "expected"), [(DEFAULT, 5), (HEAD, 4)])
def test_as_d11_a_missing_metric_blocks_scaling_down(compat: Compat | None, expected: int) -> None:
    """T32."""
    fleet = Fleet(5, under(compat, policy(metrics={"load": 10.0, "b": 2.0})))
    assert fleet.sample(33) == expected


@pytest.mark.parametrize(("compat", "mode"), [(DEFAULT, Mode.PANIC), (HEAD, Mode.STABLE)])
def test_as_d14_the_panic_threshold_looks_at_the_load_before_the_bounds(
    compat: Compat | None, mode: Mode
) -> None:
    """T64."""
    gate = PanicPolicy(threshold_percent=200, hold_ms=60_000, percent=1000, period_ms=10_000)
    panicking = policy(bounds=(1, 9), behaviour=replace(WEBHOOK_DEFAULTS, panic=gate))
    fleet = Fleet(5, under(compat, panicking))
    assert fleet.sample(1000) == 9
    assert fleet.decisions[-1].mode is mode


@pytest.mark.parametrize(("compat", "expected"), [(DEFAULT, 3), (HEAD, 4)])
def test_as_d15_a_noisy_quotient_adds_no_replica(compat: Compat | None, expected: int) -> None:
    """T36: 2.1 / 0.7 is 3.0000000000000004 in float64."""
    noisy = policy(metrics={"load": 0.7}, tolerance_percent=0)
    external = sample([metric(2.1, kind=MetricKind.EXTERNAL_TOTAL)])
    fleet = Fleet(2, under(compat, noisy))
    fleet.feed(external)
    assert fleet.replicas == expected


@pytest.mark.parametrize(
    ("instances", "select", "default"), [(1, "And", [1, 2, 3]), (0, "Or", [1, 2, 3])]
)
def test_as_d17_zero_is_left_where_there_is_data(
    instances: int, select: str, default: list[int]
) -> None:
    """T67, T68."""
    steps = StepPolicy(instances=instances, percent=100, select=select, period_ms=STEP_MS)
    from_zero = policy(bounds=(0, 10), behaviour=Behaviour(scale_up=steps))
    external = [metric(25.0, kind=MetricKind.EXTERNAL_TOTAL)]

    def story(compat: Compat | None) -> list[int]:
        fleet, seen = Fleet(0, under(compat, from_zero)), []
        for _ in range(3):
            fleet.feed(sample(external, fleet.now_ms, ready_pods=0))
            seen.append(fleet.replicas)
            fleet.advance(STEP_MS)
        return seen

    assert story(DEFAULT) == default
    assert story(HEAD) == [0, 0, 0]


def test_as_d17_a_small_share_still_moves() -> None:
    """T45: half of one replica rounds down to none."""
    steps = StepPolicy(instances=5, percent=50, select="And", period_ms=STEP_MS)
    halves = policy(behaviour=Behaviour(scale_up=steps))
    assert replicas(DEFAULT, 1, [500] * 4, halves) == [2, 3, 4, 6]
    assert replicas(HEAD, 1, [500] * 4, halves) == [1, 1, 1, 1]


@pytest.mark.parametrize("behaviour", [WEBHOOK_DEFAULTS, STEADY.behaviour])
def test_as_d19_an_edit_of_the_policy_forgets_nothing(behaviour: Behaviour) -> None:
    """Upstream scales down at once after any edit under low load."""

    def story(compat: Compat | None) -> int:
        fleet = Fleet(10, under(compat, policy(behaviour=behaviour)))
        fleet.run([100] * 3)
        fleet.policy = replace(fleet.policy, generation=2, tolerance_percent=5)
        return fleet.sample(20)

    assert story(DEFAULT) == 10
    assert story(HEAD) == 2


@pytest.mark.parametrize("step_ms", [14_900, 15_000, 15_100])
def test_as_d20_a_step_of_the_rate_comes_exactly_after_its_period(step_ms: int) -> None:
    """T42, T43: with 20 ms of jitter, upstream doubles twice as fast."""
    doubling = policy(behaviour=Behaviour(scale_up=StepPolicy(period_ms=STEP_MS)))
    fleet = Fleet(1, doubling)
    fleet.run([500] * 8, step_ms)
    steps = fleet.decisions[:5]
    assert [decided.desired for decided in steps] == [2, 4, 8, 16, 32]
    assert [decided.record.input["now_ms"] - T0 for decided in steps] == [
        index * STEP_MS for index in range(5)
    ]


@pytest.mark.parametrize("step_ms", [14_980, 15_000, 15_020])
def test_as_d20_stabilisation_ends_exactly_when_its_window_does(step_ms: int) -> None:
    fleet = Fleet(10, STEADY)
    fleet.run([100] * 3 + [20] * 8, step_ms)
    low_since_ms = T0 + 3 * step_ms
    assert fleet.decisions[-1].desired == 2
    assert fleet.decisions[-1].record.input["now_ms"] == low_since_ms + 60_000


def test_as_d20_time_never_goes_backwards() -> None:
    """An old clock would shorten windows."""
    fleet = Fleet(10, STEADY)
    fleet.run([100, 20])
    earlier, _ = decide(fleet.state, sample(30, fleet.now_ms), fleet.facts(), T0 - 60_000)
    assert earlier.changed_ms >= fleet.state.changed_ms


def test_as_d28_large_numbers_do_not_overflow() -> None:
    many = policy(bounds=(1, 1_000_000), behaviour=WEBHOOK_DEFAULTS, metrics={"load": 1e-3})
    fleet = Fleet(900_000, many)
    assert fleet.sample(1e9) == 1_000_000


def test_as_d16_no_traffic_is_no_load_and_no_latency() -> None:
    """A quantile without observations asks for nothing; nothing else needs it either."""
    idle = metric(0.0, kind=MetricKind.QUANTILE, idle=True)
    state, effects = decide(TargetState(), sample([idle]), facts(5, policy(behaviour=FREE)), T0)
    assert state.decision is not None
    assert state.decision.desired == 1
    assert effects
