"""What a replica serves, learned while requests wait."""

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferbus_autoscaler.events import Sampled, TargetReading, sampled
from inferbus_autoscaler.policy_throughput import MOST_RATES, Throughput, throughputs_after
from inferbus_contracts.deciding import Origin
from inferbus_contracts.events.metrics import (
    OUTPUT_TOKENS,
    WAITING_REQUESTS,
    MetricAggregate,
    MetricKind,
    MetricsSampled,
    TargetSample,
)
from services.autoscaler.tests.builders import KEY, POLICY, T0, target

Known = tuple[Throughput, ...]
STEP_MS = 5_000


def read(tokens: float | None, waiting: int | None = 9, at_ms: int = T0, **changes: Any) -> Sampled:
    reading = TargetReading(
        target=KEY, ready_pods=2, output_tokens=tokens, waiting=waiting, **changes
    )
    return Sampled(taken_at_ms=at_ms, readings=(reading,))


def fed(rates: Iterable[float | None], known: Known = (), ready: int = 2) -> Known:
    """Two replicas that hold each rate together for a sample of five seconds."""
    start_ms = T0 if not known or known[0].stretch is None else _last_ms(known[0]) + STEP_MS
    for index, rate in enumerate(rates):
        at_ms = start_ms + index * STEP_MS
        known = throughputs_after(known, [target(2, ready=ready)], read(rate, at_ms=at_ms))
    return known


def _last_ms(known: Throughput) -> int:
    assert known.stretch is not None
    return known.stretch.since_ms + known.stretch.held_ms


def test_three_held_rates_are_enough_and_two_are_not() -> None:
    two = fed([2000.0] * 13)
    assert (two[0].rates, two[0].used) == ((1000.0, 1000.0), None)
    three = fed([2000.0] * 19)
    assert (three[0].rates, three[0].used) == ((1000.0,) * 3, 1000.0)


def test_a_rate_is_what_was_held_all_along_and_the_highest_such_counts() -> None:
    peaks = [2000.0, 9000.0, 2000.0, 2000.0, 2000.0, 2000.0]
    known = fed([*peaks * 3, 2000.0])
    assert known[0].used == 1000.0
    assert fed([2400.0] * 12, known)[0].used == 1200.0


def test_noise_does_not_move_what_is_used() -> None:
    known = fed([2000.0] * 19)
    assert fed([2180.0] * 40, known)[0].used == 1000.0
    assert fed([2300.0] * 40, known)[0].used == 1150.0


def test_a_target_that_became_slower_is_believed_in_the_end() -> None:
    known = fed([2000.0] * 19)
    slower = fed([1000.0] * 6 * (MOST_RATES + 1), known)
    assert slower[0].used == 500.0


@pytest.mark.parametrize(
    "changes",
    [
        {"waiting": 1},
        {"waiting": None},
        {"tokens": None},
        {"tokens": 0.0},
        {"missing_pods": 1},
    ],
    ids=["too few wait", "nobody says", "no rate", "nothing made", "a pod is silent"],
)
def test_what_isn_t_saturated_ends_a_stretch(changes: dict[str, Any]) -> None:
    known = fed([2000.0] * 4)
    assert known[0].stretch is not None
    given_ = {"tokens": 2000.0, "at_ms": T0 + 4 * STEP_MS} | changes
    assert throughputs_after(known, [target(2)], read(**given_)) == ()


def test_other_replicas_begin_another_stretch() -> None:
    known = fed([2000.0] * 5)
    known = throughputs_after(known, [target(3)], read(3000.0, at_ms=T0 + 25_000))
    assert known[0].stretch is not None
    assert (known[0].stretch.since_ms, known[0].stretch.ready) == (T0 + 25_000, 3)


def test_a_gap_begins_another_stretch() -> None:
    known = throughputs_after(fed([2000.0] * 5), [target(2)], read(2000.0, at_ms=T0 + 60_000))
    assert known[0].stretch is not None
    assert known[0].stretch.since_ms == T0 + 60_000


def test_the_same_sample_again_changes_nothing() -> None:
    known = fed([2000.0] * 5)
    again = throughputs_after(known, [target(2)], read(2000.0, at_ms=T0 + 4 * STEP_MS))
    assert again is known


def test_another_object_of_the_name_is_not_known() -> None:
    known = fed([2000.0] * 19)
    assert throughputs_after(known, [target(2, uid="another")], read(None)) == ()


def beside(tokens: float, waiting: float, pods: tuple[int, int] = (2, 2)) -> TargetReading:
    sample = TargetSample(
        target=KEY,
        ready_pods=2,
        beside=[
            MetricAggregate(name=name, kind=kind, value=value, pods=count)
            for name, kind, value, count in (
                (OUTPUT_TOKENS, MetricKind.RATE, tokens, pods[0]),
                (WAITING_REQUESTS, MetricKind.GAUGE, waiting, pods[1]),
            )
        ],
    )
    data = MetricsSampled(policy=POLICY, taken_at_ms=T0, window_ms=15_000, targets=[sample])
    return sampled(data, Origin()).readings[0]


def test_only_values_of_all_pods_are_read() -> None:
    whole = beside(1234.5678, 7.0)
    assert (whole.output_tokens, whole.waiting) == (1235.0, 7)
    partial = beside(1234.5678, 7.0, pods=(1, 2))
    assert (partial.output_tokens, partial.waiting) == (None, 7)
    assert beside(float("inf"), 7.0).output_tokens is None


@given(st.lists(st.one_of(st.none(), st.floats(0, 1e9)), max_size=80))
def test_what_is_kept_is_bounded_and_used_was_held(rates: list[float | None]) -> None:
    for known in fed(rates):
        assert len(known.rates) <= MOST_RATES
        if known.used is not None:
            highest = max(rate for rate in rates if rate is not None)
            assert known.used <= float(f"{highest / 2:.3g}")
