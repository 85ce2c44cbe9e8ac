"""Records: they explain, they stay small, and they give the same bytes again."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inferbus_autoscaler.core import decide, recompute
from inferbus_autoscaler.facts import Behaviour, PanicPolicy, PolicyTarget, StepPolicy
from inferbus_autoscaler.outcomes import Decide
from inferbus_autoscaler.policy_check import fitted, problems_of
from inferbus_autoscaler.record import VERSION
from inferbus_autoscaler.state import TargetState
from inferbus_autoscaler.worst_record import worst_record_bytes
from inferbus_contracts.deciding import MOST_RECORD_BYTES
from inferbus_contracts.errors import ErrorCode, ProblemsError
from inferbus_contracts.events.metrics import MetricKind
from inferbus_contracts.events.scaling import DecisionRecord, ScalingDecided
from inferbus_contracts.resources.annotations import Compat
from services.autoscaler.tests.builders import (
    POLICY,
    STEP_MS,
    T0,
    WEBHOOK_DEFAULTS,
    Fleet,
    facts,
    metric,
    policy,
    sample,
)

LONG = StepPolicy(
    instances=1, percent=0, period_ms=1_800_000, select="And", stabilisation_ms=1_800_000
)
LONGEST = Behaviour(
    scale_down=LONG,
    scale_up=LONG,
    panic=PanicPolicy(threshold_percent=1000, hold_ms=1_800_000, period_ms=1_800_000),
)


def through_the_log(decided: ScalingDecided) -> DecisionRecord:
    """The record as another process reads it."""
    return ScalingDecided.from_json(decided.to_json()).record


@pytest.mark.parametrize("compat", [None, *Compat])
@pytest.mark.parametrize("behaviour", [Behaviour(), WEBHOOK_DEFAULTS, LONGEST])
def test_a_record_alone_gives_the_same_bytes(compat: Compat | None, behaviour: Behaviour) -> None:
    fleet = Fleet(3, policy(compat=compat, behaviour=behaviour))
    fleet.run([50, 50, 800.5, None, 0.1 + 0.2, 7, 7, 300, 20] + [20] * 30)
    assert fleet.decisions
    for decided in fleet.decisions:
        assert recompute(through_the_log(decided)) == decided.to_json()


@settings(max_examples=50)
@given(
    st.lists(st.floats(0, 1e6), min_size=1, max_size=10),
    st.sampled_from(["a", "z", "µ", "load"]),
    st.floats(0.001, 1000),
)
def test_so_does_any_record(loads: list[float], name: str, target: float) -> None:
    metrics = {name: target, "b": 3.0}
    fleet = Fleet(3, policy(behaviour=WEBHOOK_DEFAULTS, metrics=metrics))
    for load in loads:
        fleet.feed(sample([metric(load, name), metric(1.0, "b")], fleet.now_ms))
        fleet.advance(STEP_MS)
    for decided in fleet.decisions:
        assert recompute(through_the_log(decided)) == decided.to_json()


def test_a_record_says_who_decided_by_what_and_from_what() -> None:
    event = replace(sample(45), sequence=12, causes=("one", "two"))
    after, effects = decide(TargetState(), event, facts(3), T0)
    (decided,) = [effect.data for effect in effects if isinstance(effect, Decide)]
    record = decided.record
    assert (record.decider, record.version) == ("autoscaler", VERSION)
    assert (record.policy, record.policy_digest) == (POLICY, "policy-digest")
    assert (record.inbox_sequence, record.causes) == (12, ["one", "two"])
    assert record.state_before == TargetState().digest()
    assert record.state_after == after.digest()
    (reading,) = record.metrics
    assert (reading.name, reading.value, reading.target, reading.want) == ("load", 45.0, 10.0, 5)
    assert [step.name.value for step in record.limiters] == [
        "data",
        "tolerance",
        "bounds",
        "stabilisation",
        "rate",
    ]
    assert decided.desired == record.limiters[-1].after


def test_a_record_of_another_decider_is_refused() -> None:
    record = DecisionRecord(
        decider="somebody", version="9", policy=POLICY, policy_digest="", input={"x": 1}
    )
    with pytest.raises(ProblemsError, match="none of this decider's"):
        recompute(record)


def test_an_input_that_gives_no_decision_is_said_to_give_none() -> None:
    fleet = Fleet(5, policy())
    fleet.run([50])
    record = through_the_log(fleet.decisions[0])
    quiet = replace(sample(50, fleet.now_ms))
    given = record.input | {
        "state": fleet.state.to_dict(),
        "now_ms": fleet.now_ms,
        "sampled": {"taken_at_ms": quiet.taken_at_ms},
    }
    with pytest.raises(ProblemsError, match="gives no decision"):
        recompute(record.model_copy(update={"input": given}))


def spiral(count: int, high: int) -> list[float]:
    """Loads that make every window as long as it gets: from the edges to the middle."""
    return [float(10 * (high - i // 2 if i % 2 else 1 + i // 2)) for i in range(count)]


@pytest.mark.parametrize("compat", [None, *Compat])
@pytest.mark.parametrize(
    "story",
    [
        pytest.param([float(10 * (500 - i)) for i in range(130)], id="falling"),
        pytest.param([float(10 * (1 + i)) for i in range(130)], id="rising"),
        pytest.param(spiral(130, 500), id="spiral"),
    ],
)
def test_a_record_stays_below_16_kb_with_half_an_hour_of_changes(
    compat: Compat | None, story: list[float]
) -> None:
    """Windows of 30 minutes, a change every 15 s: the longest that may be."""
    given = fitted(policy(bounds=(1, 1000), compat=compat, behaviour=LONGEST, tolerance_percent=0))
    fleet = Fleet(500, given, repeat_ms=0)
    sizes = []
    for load in story:
        fleet.feed(sample([metric(load, kind=MetricKind.EXTERNAL_TOTAL)], fleet.now_ms))
        fleet.advance(STEP_MS)
        sizes += [len(decided.record.to_json()) for decided in fleet.decisions[-2:]]
    assert max(sizes) <= worst_record_bytes(given) <= MOST_RECORD_BYTES


@pytest.mark.parametrize("compat", [None, Compat.KTHENA_HEAD])
def test_windows_stay_exact_over_half_an_hour_of_changes(compat: Compat | None) -> None:
    """The first value of a falling story counts until its window ends, not longer."""
    falls = policy(
        bounds=(1, 1000),
        compat=compat,
        tolerance_percent=0,
        behaviour=Behaviour(scale_down=replace(LONG, period_ms=0)),
    )
    fleet = Fleet(300, fitted(falls))
    for index in range(130):
        load = metric(float(10 * (300 - index)), kind=MetricKind.EXTERNAL_TOTAL)
        fleet.feed(sample([load], fleet.now_ms))
        fleet.advance(STEP_MS)
    steps_in_window = 1_800_000 // STEP_MS
    behind = steps_in_window if compat is Compat.KTHENA_HEAD else steps_in_window - 1
    assert fleet.replicas == 300 - (129 - behind)


def test_each_metric_is_counted_with_what_it_may_have_to_tell() -> None:
    def many(count: int) -> Any:
        return policy(metrics={f"metric-{index}": 1 / 3 for index in range(count)})

    def size(count: int) -> int:
        silent = facts(3, many(count))
        _, effects = decide(TargetState(), sample([]), silent, T0)
        (decided,) = [effect.data for effect in effects if isinstance(effect, Decide)]
        assert all(reading.detail for reading in decided.record.metrics)
        return len(decided.record.to_json())

    grows = worst_record_bytes(many(9)) - worst_record_bytes(many(1))
    assert size(9) - size(1) <= grows


def mix(targets: int, metrics: int) -> Any:
    keys = [f"ModelServing/some-namespace/model-on-accelerator-{i:06d}" for i in range(targets)]
    return policy(
        mix=True,
        behaviour=LONGEST,
        metrics={f"some:long_metric_name_{i}": 1 / 3 for i in range(metrics)},
        targets=tuple(PolicyTarget(key=key, min_replicas=0, max_replicas=10**6) for key in keys),
    )


@pytest.mark.parametrize(("targets", "metrics"), [(1, 8), (4, 4), (8, 4), (10, 2)])
def test_mixes_of_a_usual_size_fit(targets: int, metrics: int) -> None:
    assert problems_of(mix(targets, metrics)) == ()
    assert worst_record_bytes(fitted(mix(targets, metrics))) <= MOST_RECORD_BYTES


def test_a_policy_whose_records_cannot_fit_is_refused() -> None:
    (problem,) = problems_of(mix(40, 8))
    assert problem.code is ErrorCode.TOO_LARGE
    assert problem.object == POLICY
    with pytest.raises(ProblemsError, match="fewer metrics or targets"):
        fitted(mix(40, 8))


def test_a_record_is_plain_json() -> None:
    fleet = Fleet(3, policy(behaviour=WEBHOOK_DEFAULTS))
    fleet.run([50, 500])
    for decided in fleet.decisions:
        assert json.loads(decided.to_json())["record"]["input"] == decided.record.input
