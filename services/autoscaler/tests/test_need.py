"""What the default decider reads out of a sample."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferbus_autoscaler.events import Sampled, TargetReading, sampled
from inferbus_autoscaler.facts import Facts, PolicyTarget
from inferbus_autoscaler.policy_need import MOST_NEEDED, Need, needed, whole
from inferbus_contracts.deciding import Origin
from inferbus_contracts.events.metrics import (
    MetricAggregate,
    MetricKind,
    MetricsSampled,
    TargetSample,
)
from services.autoscaler.tests.builders import (
    KEY,
    T0,
    facts,
    metric,
    mix_facts,
    mix_sample,
    policy,
    sample,
    target,
)


def need_of(the_sample: Sampled, the_facts: Facts | None = None, now_ms: int = T0) -> Need:
    the_facts = the_facts or facts(3)
    assert the_facts.policy is not None
    return needed(the_facts.policy, the_facts, the_sample, now_ms)[0]


@pytest.mark.parametrize(
    ("replicas", "expected"),
    [
        (0.0, 0),
        (-1.0, 0),
        (1e-12, 1),
        (3.0, 3),
        (3.1, 4),
        (2.1 / 0.7, 3),
        (math.inf, int(MOST_NEEDED)),
    ],
)
def test_replicas_are_whole(replicas: float, expected: int) -> None:
    assert whole(replicas) == expected


@given(st.integers(1, 10**6), st.floats(-1e-15, 1e-15))
def test_noise_never_adds_a_replica(replicas: int, error: float) -> None:
    assert whole(replicas * (1 + error)) == replicas


@given(st.floats(0, 1e12), st.floats(0, 1e12))
def test_more_load_never_needs_fewer_replicas(one: float, other: float) -> None:
    assert whole(min(one, other)) <= whole(max(one, other))


@given(st.permutations([0.1, 0.2, 0.3, 1e-9, 7.7]))
def test_as_d15_the_order_of_targets_changes_nothing(loads: list[float]) -> None:
    """Plain additions of these give different sums in different orders."""
    keys = [f"ModelServing/default/{index}" for index in range(len(loads))]
    mix = policy(
        mix=True,
        metrics={"load": 0.1},
        targets=tuple(PolicyTarget(key=key, min_replicas=0, max_replicas=9) for key in keys),
    )
    the_facts = Facts(policy=mix, targets=tuple(target(1, key=key) for key in keys))
    readings = tuple(
        TargetReading(target=key, metrics=(metric(load),), ready_pods=1)
        for key, load in zip(keys, loads, strict=True)
    )
    need = need_of(Sampled(taken_at_ms=T0, readings=readings), the_facts)
    assert need.known == math.fsum(loads) / 0.1


def test_the_metric_that_needs_most_wins() -> None:
    two = policy(metrics={"a": 10.0, "b": 2.0})
    need = need_of(sample([metric(33.0, "a"), metric(17.0, "b")]), facts(5, two))
    assert need == Need(8.5, 8.5)


def test_a_missing_metric_leaves_open_how_much_is_needed() -> None:
    two = policy(metrics={"a": 10.0, "b": 2.0})
    assert need_of(sample([metric(33.0, "a")]), facts(5, two)) == Need(3.3, None)


def test_without_any_value_nothing_is_known() -> None:
    assert need_of(sample(None)) == Need(None, None)


def test_a_pod_that_did_not_answer_leaves_it_open_too() -> None:
    assert need_of(sample(20.0, missing_pods=1)) == Need(2.0, None)


def test_a_failed_or_starting_pod_does_not() -> None:
    starting = facts(3, target={"ready": 2, "starting": 1})
    assert need_of(sample(20.0, failed_pods=1, unready_pods=1), starting) == Need(2.0, 2.0)


def test_a_replica_that_lost_its_readiness_may_carry_its_share() -> None:
    the_facts = facts(4, target={"ready": 2, "unready": 2})
    assert need_of(sample(20.0, unready_pods=2), the_facts) == Need(2.0, 4.0)


def test_a_number_that_is_none_counts_as_missing() -> None:
    assert need_of(sample([metric(None)])) == Need(None, None)


def test_a_negative_load_is_no_load() -> None:
    assert need_of(sample(-5.0)) == Need(0.0, 0.0)


def test_a_stale_sample_leaves_it_open() -> None:
    settings = facts(3).settings
    now_ms = T0 + settings.stale_ms
    assert need_of(sample(20.0), now_ms=now_ms) == Need(2.0, 2.0)
    assert need_of(sample(20.0), now_ms=now_ms + 1) == Need(2.0, None)


def test_huge_values_stay_numbers() -> None:
    huge = [metric(1.7e308, "a"), metric(1.7e308, "b", kind=MetricKind.EXTERNAL_AVERAGE)]
    two = policy(metrics={"a": 1e-300, "b": 1e-300})
    assert need_of(sample(huge), facts(1000, two)) == Need(MOST_NEEDED, MOST_NEEDED)


@pytest.mark.parametrize("kind", [MetricKind.GAUGE, MetricKind.RATE, MetricKind.EXTERNAL_TOTAL])
def test_totals_are_the_load_itself(kind: MetricKind) -> None:
    assert need_of(sample([metric(45.0, kind=kind)]), facts(3)).known == 4.5


@pytest.mark.parametrize(
    "kind",
    [MetricKind.EXTERNAL_AVERAGE, MetricKind.EXTERNAL_UTILISATION, MetricKind.QUANTILE],
)
def test_as_d03_shares_are_weighed_by_the_replicas_that_serve(kind: MetricKind) -> None:
    """T28: an average of 95 at a target of 80 asks for more than there is, not for two."""
    average = policy(metrics={"load": 80.0})
    the_facts = facts(4, average, target={"ready": 4})
    assert need_of(sample([metric(95.0, kind=kind)]), the_facts).known == 4 * 95 / 80


def test_a_share_without_a_replica_that_serves_says_nothing() -> None:
    idle = facts(2, target={"ready": 0, "starting": 2})
    average = metric(95.0, kind=MetricKind.EXTERNAL_AVERAGE)
    assert need_of(sample([average]), idle) == Need(None, None)


def test_a_quantile_of_nothing_is_no_load() -> None:
    quiet = metric(3.0, kind=MetricKind.QUANTILE, idle=True)
    assert need_of(sample([quiet])) == Need(0.0, 0.0)


def test_an_external_metric_needs_no_pod() -> None:
    external = metric(25.0, kind=MetricKind.EXTERNAL_TOTAL)
    assert need_of(sample([external], ready_pods=0), facts(0)) == Need(2.5, 2.5)


def test_a_mix_adds_the_loads_of_its_targets() -> None:
    assert need_of(mix_sample((20.0, 15.0)), mix_facts((2, 2))) == Need(3.5, 3.5)


def test_as_d12_a_target_without_replicas_is_complete_without_a_metric() -> None:
    """T21: upstream lets the empty one inflate the total."""
    assert need_of(mix_sample((20.0, None)), mix_facts((2, 0))) == Need(2.0, 2.0)


def test_a_target_with_replicas_and_no_metric_leaves_it_open() -> None:
    given = mix_sample((20.0, None))
    silent = replace(given.readings[1], ready_pods=2)
    given = replace(given, readings=(given.readings[0], silent))
    assert need_of(given, mix_facts((2, 2))) == Need(2.0, None)


def test_a_target_that_was_not_sampled_leaves_it_open_unless_it_is_empty() -> None:
    only_one = Sampled(taken_at_ms=T0, readings=mix_sample((20.0, None)).readings[:1])
    assert need_of(only_one, mix_facts((2, 1))) == Need(2.0, None)
    assert need_of(only_one, mix_facts((2, 0))) == Need(2.0, 2.0)


def test_shares_of_a_mix_are_weighed_by_capacity() -> None:
    the_facts = mix_facts((2, 4), capacity=3.0)
    given = mix_sample((9.0, 5.0))
    readings = tuple(
        replace(
            reading,
            metrics=(replace(reading.metrics[0], kind=MetricKind.EXTERNAL_UTILISATION),),
        )
        for reading in given.readings
    )
    need = need_of(replace(given, readings=readings), the_facts)
    assert need.known == (9.0 * 2 * 3 + 5.0 * 4) / 10


def test_what_the_collector_says_is_reduced_to_counts_and_finite_numbers() -> None:
    data = MetricsSampled(
        policy="AutoscalingPolicy/default/policy",
        taken_at_ms=T0,
        window_ms=15_000,
        targets=[
            TargetSample(
                target=KEY,
                metrics=[
                    MetricAggregate(name="load", kind=MetricKind.GAUGE, value=math.nan, pods=2),
                    MetricAggregate(
                        name="ttft", kind=MetricKind.QUANTILE, value=0.0, observations=0.0
                    ),
                ],
                ready_pods=2,
                missing=["pod-1", "pod-2"],
            )
        ],
    )
    event = sampled(data, Origin(sequence=7, causes=("cause",)))
    reading = event.reading(KEY)
    assert reading is not None
    assert (event.sequence, event.causes, reading.missing_pods) == (7, ("cause",), 2)
    assert reading.metrics == (
        metric(None),
        metric(0.0, "ttft", kind=MetricKind.QUANTILE, idle=True),
    )
