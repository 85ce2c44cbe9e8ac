"""Decisions as people read them."""

from typing import Any

import pytest

from inferbus_cli.explanations import explain, what_holds
from inferbus_contracts.api.console import ExplainedDecision
from inferbus_contracts.events.scaling import (
    Allocation,
    ApplyOutcome,
    DecisionRecord,
    Limiter,
    LimiterStep,
    MetricReading,
    Mode,
    ScalingAllocated,
    ScalingApplied,
    ScalingDecided,
)

TIME_MS = 1_795_182_724_908
KEY = "ModelServing/default/m"


def record(**changes: Any) -> DecisionRecord:
    given: dict[str, Any] = {
        "decider": "autoscaler",
        "version": "1",
        "policy": "AutoscalingPolicy/default/p",
        "policy_digest": "d",
        "input": {},
        "metrics": [
            MetricReading(name="waiting", value=41.5, target=5, want=9, detail="41.5 / 5"),
            MetricReading(name="ttft", value=None, target=2),
        ],
        "limiters": [
            LimiterStep(name=Limiter.BOUNDS, before=9, after=8, detail="at most 8"),
            LimiterStep(name=Limiter.RATE, before=8, after=4, detail="100 % in 15 s"),
        ],
        "binding": Limiter.RATE,
        "causes": ["sample-1"],
    }
    return DecisionRecord(**(given | changes))


def decided(*outcomes: ApplyOutcome, message: str = "", **changes: Any) -> ExplainedDecision:
    body = ScalingDecided(
        current=2,
        desired=4,
        mode=changes.pop("mode", Mode.STABLE),
        apply=changes.pop("apply", "auto"),
        target_uid="u",
        target_generation=1,
        record=record(**changes),
    )
    applied = [
        ScalingApplied(
            decision_id="d-1", outcome=one, replicas=4, generation=2, uid="u", message=message
        ).to_dict()
        for one in outcomes
    ]
    return ExplainedDecision(
        id="d-1",
        type="scaling.decided",
        time_ms=TIME_MS,
        sequence=42,
        key=KEY,
        body=body.to_dict(),
        applied=applied,
    )


def test_an_explanation_tells_everything_in_order() -> None:
    told = explain(decided(ApplyOutcome.APPLIED, mode=Mode.PANIC), TIME_MS + 65_000)
    assert told == (
        "ModelServing/default/m  2 → 4, panic\n"
        "decided 2026-11-20T13:52:04.908Z (65s ago), held by rate\n"
        "\n"
        "Seen\n"
        "  METRIC    VALUE     TARGET   WANTS     DETAIL\n"
        "  waiting   41.5      5        9         41.5 / 5\n"
        "  ttft      missing   2        nothing   -\n"
        "\n"
        "Limiters, in order\n"
        "  LIMITER   BEFORE   AFTER   DETAIL\n"
        "  bounds    9        8       at most 8\n"
        "  rate *    8        4       100 % in 15 s\n"
        "  * the one that binds: the policy allows only so much change within one period\n"
        "\n"
        "What became of it\n"
        "  applied (4 replicas, generation 2)\n"
        "\n"
        "Where it comes from\n"
        "  decision  d-1\n"
        "  policy    AutoscalingPolicy/default/p\n"
        "  decider   autoscaler 1\n"
        "  cause     sample-1\n"
        "  record    inferbus replay --stream DECISIONS --sequence 42..42 -o json"
    )


@pytest.mark.parametrize("outcome", ApplyOutcome)
def test_every_outcome_is_told_with_its_message(outcome: ApplyOutcome) -> None:
    told = explain(decided(outcome, message="because so"), TIME_MS)
    assert ": because so (4 replicas, generation 2)" in told


@pytest.mark.parametrize("limiter", [one for one in Limiter if one is not Limiter.NONE])
def test_every_limiter_is_named_in_a_sentence(limiter: Limiter) -> None:
    steps = [LimiterStep(name=limiter, before=9, after=4, detail="the numbers")]
    told = what_holds(decided(binding=limiter, limiters=steps))
    assert f"{limiter.value} holds it back from 9 to 4" in told
    assert "has 2 replicas and is to have 4, its metrics ask for 9" in told
    assert told.endswith("(the numbers).")


def test_without_a_limiter_the_metrics_got_what_they_ask_for() -> None:
    told = what_holds(decided(ApplyOutcome.APPLIED, binding=Limiter.NONE))
    assert "the metrics got what they ask for" in told


def test_without_a_metric_that_is_said() -> None:
    told = what_holds(decided(binding=Limiter.NONE, metrics=[]))
    assert "no metric asks for anything" in told


@pytest.mark.parametrize(
    ("outcomes", "said"),
    [
        ((ApplyOutcome.FROZEN,), "it is frozen (by ada)"),
        ((ApplyOutcome.AWAITING_APPROVAL,), "waits for approval"),
        ((ApplyOutcome.AWAITING_APPROVAL, ApplyOutcome.APPLIED), "waits for approval"),
    ],
)
def test_a_decision_that_wasnt_applied_is_held_by_that(
    outcomes: tuple[ApplyOutcome, ...], said: str
) -> None:
    assert said in what_holds(decided(*outcomes, message="by ada", binding=Limiter.NONE))


def test_a_mix_tells_each_target() -> None:
    shares = [
        Allocation(target="ModelServing/default/a", uid="u", generation=1, current=1, desired=3),
        Allocation(target="ModelServing/default/b", uid="v", generation=1, current=2, desired=0),
    ]
    body = ScalingAllocated(
        allocations=shares, cost=300, optimal_cost=280, record=record(binding=Limiter.NONE)
    )
    decision = ExplainedDecision(
        id="d",
        type="scaling.allocated",
        time_ms=TIME_MS,
        sequence=1,
        key="AutoscalingPolicy/default/p",
        body=body.to_dict(),
    )
    told = explain(decision, TIME_MS)
    assert "cost 300, at least 280" in told
    assert "  ModelServing/default/a 1 → 3\n  ModelServing/default/b 2 → 0\n" in told
    assert "no answer yet" in told
    held = what_holds(decision)
    assert "is to have ModelServing/default/a 3, ModelServing/default/b 0" in held
