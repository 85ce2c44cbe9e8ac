"""Why a target hasn't some other number, and when that may change."""

from typing import Any

import pytest

from inferbus_cli.alternatives import WhyNot, targets_of, why_not
from inferbus_contracts.api.console import (
    AnswerRow,
    DemandRow,
    ExplainedDecision,
    FreezeRow,
    Standing,
)
from inferbus_contracts.errors import ErrorCode, ProblemsError
from inferbus_contracts.events.scaling import (
    Allocation,
    ApplyOutcome,
    DecisionRecord,
    Limiter,
    LimiterStep,
    MetricReading,
    ScalingAllocated,
    ScalingApplied,
    ScalingDecided,
    ScalingDemanded,
    TargetOption,
)

NOW_MS = 1_795_182_724_908
KEY = "ModelServing/default/m"
MIX = "AutoscalingPolicyBinding/default/mix"


def step(name: Limiter, before: int, after: int, detail: str = "") -> LimiterStep:
    return LimiterStep(name=name, before=before, after=after, detail=detail)


def record(load: float | None, *steps: LimiterStep, bounds: tuple[int, int] = (1, 8)) -> Any:
    want = None if load is None else -int(-load // 5)
    target = {"key": KEY, "min_replicas": bounds[0], "max_replicas": bounds[1]}
    moving = [one.name for one in steps if one.before != one.after]
    return DecisionRecord(
        decider="autoscaler",
        version="1",
        policy="p",
        policy_digest="d",
        input={"facts": {"policy": {"targets": [target]}}},
        metrics=[
            MetricReading(name="waiting", value=load, target=5, want=want),
            MetricReading(name="ttft", value=None, target=2),
        ],
        limiters=list(steps),
        binding=moving[-1] if moving else Limiter.NONE,
    )


def asked(
    wanted: int | None,
    desired: int,
    load: float | None,
    *steps: LimiterStep,
    outcome: ApplyOutcome = ApplyOutcome.APPLIED,
    standing: Standing | None = None,
    current: int = 3,
) -> WhyNot:
    body = ScalingDecided(
        current=current,
        desired=desired,
        target_uid="u",
        target_generation=1,
        record=record(load, *steps),
    )
    there = desired if outcome is ApplyOutcome.APPLIED else current
    answer = ScalingApplied(
        decision_id="d-1", outcome=outcome, replicas=there, generation=2, uid="u", message="so"
    )
    decision = ExplainedDecision(
        id="d-1",
        type="scaling.decided",
        time_ms=NOW_MS,
        sequence=1,
        key=KEY,
        body=body.to_dict(),
        answers=[AnswerRow(id="a", time_ms=NOW_MS, target=KEY, body=answer.to_dict())],
        standing=standing,
    )
    return why_not(decision, NOW_MS, wanted)


UP = (
    step(Limiter.DATA, 9, 9),
    step(Limiter.BOUNDS, 9, 8, "1 to 8"),
    step(Limiter.RATE, 8, 4, "least of the last 15 s is 2"),
)
"""Nine are needed, and four are given."""


@pytest.mark.parametrize(
    ("wanted", "keeper"),
    [
        (12, "load"),
        (10, "load"),
        (9, "bounds"),
        (8, "rate"),
        (5, "rate"),
        (3, "load"),
        (None, "bounds"),
    ],
)
def test_the_step_that_leaps_over_a_number_keeps_the_target_from_it(
    wanted: int | None, keeper: str
) -> None:
    told = asked(wanted, 4, 41.5, *UP)
    assert (told.keeper, told.desired) == (keeper, 4)
    assert told.headline.startswith(f"{KEY} is to have 4, not ")


def test_a_limiter_is_told_with_its_numbers_the_load_and_when_it_ends() -> None:
    standing = Standing(next_look_ms=NOW_MS + 9_000, next_look_reason="rate ends")
    told = asked(6, 4, 41.5, *UP, standing=standing)
    assert told.text == (
        f"{KEY} is to have 4, not 6\n"
        "  8 → 4 by rate: the policy allows only so much change within one period "
        "(least of the last 15 s is 2)\n"
        "  the load needs 9: waiting is 41.5 at 5 a replica\n"
        "  this may change when the period ends, if the load stays\n"
        "  the number may change by itself at 2026-11-20T13:52:13.908Z (in 9s): rate ends"
    )


@pytest.mark.parametrize("limiter", [one for one in Limiter if one is not Limiter.NONE])
def test_every_limiter_says_when_it_may_change(limiter: Limiter) -> None:
    told = asked(5, 4, 41.5, step(limiter, 9, 4))
    assert told.keeper == limiter.value
    assert told.lines[-1].startswith("this may change ")


def test_a_load_that_asks_for_less_says_which_metric_and_how_much_it_would_take() -> None:
    told = asked(10, 2, 9.0)
    assert told.keeper == "load"
    assert told.lines == (
        "the load doesn't ask for it: waiting is 9 at 5 a replica, which needs 2",
        "10 would be needed with waiting above 45",
        "and the policy's bounds are 1 to 8",
    )


def test_a_load_that_asks_for_more_says_how_much_would_do() -> None:
    told = asked(2, 4, 20.0)
    assert told.lines == (
        "the load needs more: waiting is 20 at 5 a replica, which needs 4",
        "2 would do with waiting at 10 or less",
    )


def test_what_stabilisation_holds_up_is_told_though_the_load_needs_less() -> None:
    held = step(Limiter.STABILISATION, 1, 6, "most of the last 120 s is 6")
    for wanted in (1, 3, 5):
        assert asked(wanted, 6, 4.0, held).keeper == "stabilisation"
    assert asked(0, 6, 4.0, held).keeper == "load"
    assert asked(9, 6, 4.0, held).keeper == "load"


def test_without_any_value_the_number_stays() -> None:
    told = asked(5, 3, None)
    assert (told.keeper, told.lines[0]) == (
        "load",
        "no metric has a value, so nothing is known of the load and the number stays",
    )


def test_the_very_number_that_was_decided_is_told_with_what_became_of_it() -> None:
    done = asked(4, 4, 20.0)
    assert done.text == (f"{KEY} is to have 4, and has 4\n  nothing holds it back: it was applied")
    frozen = asked(4, 4, 20.0, outcome=ApplyOutcome.FROZEN)
    assert frozen.keeper == "answer"
    assert frozen.text == f"{KEY} is to have 4, and has 3\n  not applied, it is frozen: so"


def test_a_freeze_is_told_with_its_end() -> None:
    freeze = FreezeRow(scope=KEY, who="ada", why="a leak", until_ms=NOW_MS + 60_000)
    held = step(Limiter.FREEZE, 9, 3, "frozen")
    told = asked(9, 3, 41.5, held, standing=Standing(freezes=[freeze]))
    assert told.keeper == "freeze"
    assert "9 → 3 by freeze: a person froze it (frozen)" in told.lines
    assert told.lines[-1] == (
        f"{KEY} is frozen by ada until 2026-11-20T13:53:04.908Z (in 60s): a leak"
    )


def mixed() -> ExplainedDecision:
    names = ("ModelServing/default/a", "ModelServing/default/b")
    shares = [
        Allocation(target=name, uid="u", generation=1, current=1, desired=number)
        for number, name in enumerate(names, start=2)
    ]
    options = [
        TargetOption(
            target=name, uid="u", generation=1, current=1, min_replicas=0, max_replicas=4, cost=7
        )
        for name in names
    ]
    demand = ScalingDemanded(
        capacity=5, replicas=5, current=2, targets=options, record=record(25.0)
    )
    body = ScalingAllocated(allocations=shares, cost=35, optimal_cost=35, record=record(None))
    return ExplainedDecision(
        id="d-1",
        type="scaling.allocated",
        time_ms=NOW_MS,
        sequence=1,
        key=MIX,
        body=body.to_dict(),
        demand=DemandRow(id="x", time_ms=NOW_MS, body=demand.to_dict()),
    )


def test_a_target_of_a_mix_is_told_with_the_whole_of_it() -> None:
    told = why_not(mixed(), NOW_MS, 6, "ModelServing/default/a")
    assert told.headline == "ModelServing/default/a is to have 2, not 6"
    assert told.lines == (
        "the mix is chosen as a whole: it costs 35, at least 35",
        "it must serve 5 capacity units",
        "the load needs 5 of these: waiting is 25 at 5 a replica",
        "its bounds are 0 to 4",
    )


def test_a_number_for_a_whole_mix_means_nothing() -> None:
    with pytest.raises(ProblemsError) as told:
        why_not(mixed(), NOW_MS, 6, MIX)
    (problem,) = told.value.problems
    assert problem.code is ErrorCode.BAD_ARGUMENT
    assert "ModelServing/default/b" in problem.remedy


def test_without_a_number_a_mix_stands_for_its_targets() -> None:
    assert targets_of(mixed(), MIX, None) == ("ModelServing/default/a", "ModelServing/default/b")
    assert targets_of(mixed(), MIX, 3) == (MIX,)
    assert targets_of(mixed(), "ModelServing/default/b", None) == ("ModelServing/default/b",)


def test_what_a_replica_carries_is_not_told_before_it_is_known() -> None:
    """Of an objective alone, until some replica was seen to be busy."""
    demand = MetricReading(name="demand", value=3.5, target=0, want=3)
    body = ScalingDecided(
        current=3,
        desired=3,
        target_uid="u",
        target_generation=1,
        record=record(None).model_copy(update={"metrics": [demand]}),
    )
    decision = ExplainedDecision(
        id="d", type="scaling.decided", time_ms=NOW_MS, sequence=1, key=KEY, body=body.to_dict()
    )
    assert "demand is 3.5, which needs 3" in why_not(decision, NOW_MS, 5).text
    for wanted in (1, 5):
        assert "demand above" not in why_not(decision, NOW_MS, wanted).text
        assert "demand at 0" not in why_not(decision, NOW_MS, wanted).text
