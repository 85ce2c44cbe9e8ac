"""Decisions as people read them."""

from typing import Any

import pytest

from inferbus_cli.explanations import explain
from inferbus_contracts.api.console import (
    AnswerRow,
    DemandRow,
    ExplainedDecision,
    FreezeRow,
    Standing,
)
from inferbus_contracts.errors import ErrorCode, Problem
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
    ScalingDemanded,
)

TIME_MS = 1_795_182_724_908
KEY = "ModelServing/default/m"


def record(**changes: Any) -> DecisionRecord:
    given: dict[str, Any] = {
        "decider": "autoscaler",
        "version": "1",
        "policy": "AutoscalingPolicy/default/p",
        "policy_digest": "d",
        "input": {
            "sampled": {
                "taken_at_ms": TIME_MS - 500,
                "readings": [{"target": KEY, "ready_pods": 2, "missing_pods": 1}],
            },
            "facts": {"policy": {"targets": [{"key": KEY, "min_replicas": 1, "max_replicas": 8}]}},
        },
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


def decided(
    *outcomes: ApplyOutcome, message: str = "", standing: Standing | None = None, **changes: Any
) -> ExplainedDecision:
    body = ScalingDecided(
        current=2,
        desired=4,
        mode=changes.pop("mode", Mode.STABLE),
        apply=changes.pop("apply", "auto"),
        target_uid="u",
        target_generation=1,
        record=record(**changes),
    )
    answers = [
        AnswerRow(id=f"a-{number}", time_ms=TIME_MS + 100, target=KEY, body=body_of(one, message))
        for number, one in enumerate(outcomes)
    ]
    return ExplainedDecision(
        id="d-1",
        type="scaling.decided",
        time_ms=TIME_MS,
        sequence=42,
        key=KEY,
        body=body.to_dict(),
        answers=answers,
        standing=standing,
    )


def body_of(outcome: ApplyOutcome, message: str = "") -> dict[str, Any]:
    return ScalingApplied(
        decision_id="d-1", outcome=outcome, replicas=4, generation=2, uid="u", message=message
    ).to_dict()


def test_an_explanation_tells_everything_in_order() -> None:
    told = explain(decided(ApplyOutcome.APPLIED, mode=Mode.PANIC), TIME_MS + 65_000)
    assert told == (
        "ModelServing/default/m  2 → 4, panic\n"
        "decided 2026-11-20T13:52:04.908Z (65s ago), held by rate\n"
        "\n"
        "In short\n"
        "  the load needs 9: waiting is 41.5 at 5 a replica\n"
        "  9 → 8 by bounds: the policy's minimum and maximum allow no other number (at most 8)\n"
        "  8 → 4 by rate: the policy allows only so much change within one period "
        "(100 % in 15 s)\n"
        "\n"
        "Seen\n"
        "  METRIC    VALUE     TARGET   WANTS     DETAIL\n"
        "  waiting   41.5      5        9         41.5 / 5\n"
        "  ttft      missing   2        nothing   -\n"
        "  sampled 13:52:04.408 from 2 pods, 1 didn't answer\n"
        "\n"
        "Limiters, in order\n"
        "  LIMITER   BEFORE   AFTER   DETAIL\n"
        "  bounds    9        8       at most 8\n"
        "  rate *    8        4       100 % in 15 s\n"
        "  * the one that binds: the policy allows only so much change within one period\n"
        "\n"
        "What became of it\n"
        "  13:52:05.008  applied (4 replicas, generation 2)\n"
        "\n"
        "Where it comes from\n"
        "  cause     sample-1  metrics.sampled\n"
        "  decision  d-1\n"
        "  answer    a-0\n"
        "  policy    AutoscalingPolicy/default/p\n"
        "  decider   autoscaler 1\n"
        "  record    inferbus replay --stream DECISIONS --sequence 42..42 -o json"
    )


@pytest.mark.parametrize("outcome", ApplyOutcome)
def test_every_outcome_is_told_with_its_message(outcome: ApplyOutcome) -> None:
    told = explain(decided(outcome, message="because so"), TIME_MS)
    assert ": because so (4 replicas, generation 2)" in told


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


def lines(text: str) -> list[str]:
    """What stands in short, line by line."""
    return text.partition("In short\n")[2].partition("\n\n")[0].splitlines()


def test_without_a_value_nothing_is_known_of_the_load() -> None:
    blind = [MetricReading(name="waiting", value=None, target=5)]
    told = lines(explain(decided(metrics=blind, limiters=[], binding=Limiter.NONE), TIME_MS))
    assert told == ["  no metric has a value, so nothing is known of the load"]


def test_a_decision_that_waits_says_which_command_lets_it_go() -> None:
    told = lines(explain(decided(ApplyOutcome.AWAITING_APPROVAL, apply="approve"), TIME_MS))
    assert told[-1] == (
        f"  it waits for approval: inferbus approve {KEY} --decision d-1 --why '...'"
    )


def test_a_decision_that_failed_says_why_in_short() -> None:
    told = lines(explain(decided(ApplyOutcome.FAILED, message="no such role"), TIME_MS))
    assert told[-1] == "  failed: no such role"


def test_what_holds_now_is_told_with_its_end() -> None:
    problem = Problem(code=ErrorCode.VALUE_OUT_OF_RANGE, message="is above 9", field="minReplicas")
    standing = Standing(
        freezes=[
            FreezeRow(scope="Platform/_/all", who="ada", why="incident", until_ms=TIME_MS + 60_000),
            FreezeRow(scope=KEY, who="kim", why="a leak"),
        ],
        problems=[problem],
        next_look_ms=TIME_MS + 12_000,
        next_look_reason="stabilisation ends",
    )
    told = lines(explain(decided(ApplyOutcome.APPLIED, standing=standing), TIME_MS))
    assert told[-4:] == [
        "  the policy can't be used: minReplicas: is above 9 [IB-1007]",
        "  Platform/_/all is frozen by ada until 2026-11-20T13:53:04.908Z (in 60s): incident",
        f"  {KEY} is frozen by kim until somebody thaws it: a leak",
        "  the number may change by itself at 2026-11-20T13:52:16.908Z (in 12s): "
        "stabilisation ends",
    ]


def test_a_mix_tells_the_load_behind_it_and_each_target_s_answer() -> None:
    demand = ScalingDemanded(capacity=12, replicas=12, current=3, targets=[], record=record())
    shares = [
        Allocation(target=f"{KEY}{name}", uid="u", generation=1, current=1, desired=3)
        for name in "ab"
    ]
    waits = LimiterStep(name=Limiter.STABILISATION, before=4, after=6, detail="costs 10 less")
    body = ScalingAllocated(
        allocations=shares,
        cost=300,
        optimal_cost=280,
        record=record(binding=Limiter.STABILISATION, limiters=[waits]),
    )
    decision = ExplainedDecision(
        id="d-1",
        type="scaling.allocated",
        time_ms=TIME_MS,
        sequence=1,
        key="AutoscalingPolicy/default/p",
        body=body.to_dict(),
        demand=DemandRow(id="demand-1", time_ms=TIME_MS, body=demand.to_dict()),
        answers=[
            AnswerRow(
                id=one.target,
                time_ms=TIME_MS,
                target=one.target,
                body=body_of(ApplyOutcome.APPLIED),
            )
            for one in shares
        ],
    )
    told = explain(decision, TIME_MS)
    assert lines(told)[-1] == (
        "  4 → 6 by stabilisation: switching to the cheapest mix doesn't pay yet (costs 10 less)"
    )
    assert "so the mix must serve 12 capacity units" in told
    for one in shares:
        assert f"13:52:04.908  {one.target} applied (4 replicas, generation 2)" in told
    assert "  demand    demand-1\n" in told
