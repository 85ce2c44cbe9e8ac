"""Many pods to one value: sums in any order, one quantile of all buckets, gaps that are named."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferbus_contracts.events.metrics import MetricKind
from inferbus_metrics_collector.policy_aggregate import aggregate
from inferbus_metrics_collector.policy_quantile import merge_buckets, quantile
from inferbus_metrics_collector.policy_series import Buckets, PodValue, Unusable

INF = math.inf


def gauge(value: float) -> PodValue:
    return PodValue(kind=MetricKind.GAUGE, value=value)


def observed(buckets: Buckets, span_ms: int = 5_000) -> PodValue:
    return PodValue(kind=MetricKind.QUANTILE, buckets=buckets, span_ms=span_ms)


def test_gauges_of_pods_add_up() -> None:
    outcome = aggregate("load", {"a": gauge(1.5), "b": gauge(2.5), "c": None})
    assert outcome.metric is not None
    assert (outcome.metric.value, outcome.metric.pods) == (4.0, 2)
    assert outcome.silent == frozenset()
    assert outcome.problems == ()


def test_rates_add_up_and_carry_the_longest_span() -> None:
    pods = {
        name: PodValue(kind=MetricKind.RATE, value=2.0, span_ms=span)
        for name, span in (("a", 5_000), ("b", 15_000))
    }
    outcome = aggregate("tokens", pods)
    assert outcome.metric is not None
    assert (outcome.metric.kind, outcome.metric.value) == (MetricKind.RATE, 4.0)
    assert outcome.window_ms == 15_000


@given(st.lists(st.floats(0, 1e12), min_size=1, max_size=30), st.randoms(use_true_random=False))
def test_as_d15_the_order_of_the_pods_makes_no_difference(
    values: list[float], randomness: random.Random
) -> None:
    pods = [(f"pod-{number}", gauge(value)) for number, value in enumerate(values)]
    first = aggregate("load", dict(pods))
    randomness.shuffle(pods)
    assert aggregate("load", dict(pods)) == first


def test_as_d15_the_sum_is_that_of_the_numbers_and_not_of_their_order() -> None:
    for order in ((0.1, 0.2, 0.3), (0.3, 0.2, 0.1), (0.2, 0.3, 0.1)):
        outcome = aggregate("load", {f"p{n}": gauge(value) for n, value in enumerate(order)})
        assert outcome.metric is not None
        assert outcome.metric.value == 0.6


def test_as_d10_a_pod_without_a_number_is_named_and_the_others_count() -> None:
    outcome = aggregate("load", {"a": gauge(3.0), "b": Unusable("load is not finite")})
    assert outcome.metric is not None
    assert (outcome.metric.value, outcome.metric.pods) == (3.0, 1)
    assert outcome.silent == {"b"}
    assert outcome.problems == ("load: pod b: load is not finite",)


def test_a_family_on_no_page_is_told() -> None:
    outcome = aggregate("load", {"a": None, "b": None})
    assert outcome.metric is None
    assert outcome.problems == ("load: no pod has it on its page",)
    assert aggregate("load", {}).problems == ()


def test_pods_that_disagree_about_the_type_give_nothing() -> None:
    rate = PodValue(kind=MetricKind.RATE, value=1.0, span_ms=1)
    outcome = aggregate("load", {"a": gauge(1.0), "b": rate})
    assert outcome.metric is None
    assert "disagree" in outcome.problems[0]


def test_as_d16_buckets_are_merged_before_one_quantile_is_taken() -> None:
    fast = observed({0.1: 90.0, 1.0: 90.0, INF: 90.0})
    slow = observed({0.1: 0.0, 1.0: 10.0, INF: 10.0})
    outcome = aggregate("latency", {"a": fast, "b": slow})
    assert outcome.metric is not None
    assert outcome.metric.kind is MetricKind.QUANTILE
    assert outcome.metric.value == pytest.approx(0.1 + 0.9 * 5 / 10)
    assert outcome.metric.buckets == [(0.1, 90.0), (1.0, 100.0)]
    assert (outcome.metric.observations, outcome.metric.pods) == (100.0, 2)


def test_as_d16_without_traffic_there_is_no_quantile() -> None:
    outcome = aggregate("latency", {"a": observed({0.1: 0.0, INF: 0.0})})
    assert outcome.metric is None
    assert outcome.silent == frozenset()
    assert "no observation" in outcome.passing[0]
    assert outcome.problems == ()


@pytest.mark.parametrize(
    ("share", "buckets", "expected"),
    [
        (0.5, [(0.5, 2.0), (0.75, 7.0), (INF, 8.0)], 0.5 + 0.25 * 2 / 5),
        (0.95, [(0.1, 50.0), (0.5, 90.0), (1.0, 98.0), (INF, 100.0)], 0.5 + 0.5 * 5 / 8),
        (0.95, [(0.1, 10.0), (INF, 100.0)], 0.1),
        (0.95, [(1.0, 100.0), (INF, 100.0)], 0.95),
        (0.01, [(1.0, 0.0), (2.0, 4.0), (INF, 4.0)], 1.01),
        (0.5, [(-1.0, 4.0), (1.0, 4.0), (INF, 4.0)], -1.0),
        (0.5, [(-1.0, 0.0), (1.0, 4.0), (INF, 4.0)], 0.0),
        (0.5, [(INF, 7.0)], None),
        (0.5, [(1.0, 0.0), (INF, 0.0)], None),
        (0.5, [], None),
    ],
)
def test_the_quantile_is_that_of_prometheus(
    share: float, buckets: list[tuple[float, float]], expected: float | None
) -> None:
    found = quantile(share, buckets)
    assert found == (None if expected is None else pytest.approx(expected))


def test_different_bounds_merge_to_counts_that_are_never_too_high() -> None:
    merged = merge_buckets([{1.0: 5.0, 4.0: 9.0, INF: 10.0}, {2.0: 3.0, INF: 4.0}])
    assert merged == [(1.0, 5.0), (2.0, 8.0), (4.0, 12.0), (INF, 14.0)]


def test_counts_read_at_different_instants_still_rise() -> None:
    assert merge_buckets([{1.0: 5.0, 2.0: 4.0, INF: 6.0}]) == [(1.0, 5.0), (2.0, 5.0), (INF, 6.0)]


samples = st.lists(st.floats(0.001, 99), min_size=1, max_size=60)


@given(st.lists(samples, min_size=1, max_size=5), st.floats(0.01, 1))
def test_the_quantile_of_merged_pods_lies_in_the_bucket_of_the_true_one(
    pods: list[list[float]], share: float
) -> None:
    bounds = (0.01, 0.1, 1.0, 10.0, 100.0)
    counted = [
        {bound: float(sum(value <= bound for value in values)) for bound in (*bounds, INF)}
        for values in pods
    ]
    found = quantile(share, merge_buckets(counted))
    everything = sorted(value for values in pods for value in values)
    exact = everything[math.ceil(share * len(everything) - 1e-9) - 1]
    upper = next(bound for bound in bounds if exact <= bound)
    lower = max((bound for bound in bounds if bound < upper), default=0.0)
    assert found is not None
    assert lower <= found <= upper
