"""What limiters and answers are called in sentences, the same wherever they are explained. Pure."""

from collections.abc import Iterator

from inferbus_cli.units import age, number
from inferbus_contracts.api.console import ExplainedDecision, Standing
from inferbus_contracts.envelope import format_time
from inferbus_contracts.events.scaling import (
    ApplyOutcome,
    DecisionRecord,
    Limiter,
    LimiterStep,
    MetricReading,
    ScalingAllocated,
    ScalingApplied,
    ScalingDecided,
    ScalingDemanded,
)

Decided = ScalingDecided | ScalingAllocated

HOLDS = {
    Limiter.DATA: "samples are missing, partial or stale, and nothing is scaled down on those",
    Limiter.TOLERANCE: "the difference lies inside the policy's tolerance",
    Limiter.BOUNDS: "the policy's minimum and maximum allow no other number",
    Limiter.STABILISATION: "a more cautious answer of the stabilisation window still counts",
    Limiter.RATE: "the policy allows only so much change within one period",
    Limiter.PANIC: "while load jumps nothing is scaled down, and up only as panic allows",
    Limiter.RATIO: "the ratio between the roles has to be kept",
    Limiter.CAPACITY: "no more replicas can be scheduled",
    Limiter.FREEZE: "a person froze it",
}
HOLDS_A_MIX = {
    Limiter.STABILISATION: "switching to the cheapest mix doesn't pay yet",
    Limiter.CAPACITY: "the targets together can't serve more",
}
BECAME = {
    ApplyOutcome.APPLIED: "applied",
    ApplyOutcome.UNCHANGED: "the target had that number already",
    ApplyOutcome.CONFLICT: "not applied, the target had changed since; it is decided again",
    ApplyOutcome.FROZEN: "not applied, it is frozen",
    ApplyOutcome.AWAITING_APPROVAL: "waits for approval (`inferbus approve`)",
    ApplyOutcome.ADVISED: "not applied, the policy only advises",
    ApplyOutcome.FAILED: "failed",
}
ENDS = {
    Limiter.DATA: "once every pod answers again",
    Limiter.TOLERANCE: "once the load needs a number outside the tolerance",
    Limiter.BOUNDS: "only when somebody changes the policy's bounds",
    Limiter.STABILISATION: "when the window ends, if the load stays",
    Limiter.RATE: "when the period ends, if the load stays",
    Limiter.PANIC: "when panic ends",
    Limiter.RATIO: "when the other role's number changes",
    Limiter.CAPACITY: "once more replicas can be scheduled",
    Limiter.FREEZE: "when it is thawed",
}
"""When what a limiter keeps may change."""

_SETTLED = (ApplyOutcome.APPLIED, ApplyOutcome.UNCHANGED)


def body_of(decision: ExplainedDecision) -> Decided:
    """The decision's body as its type."""
    is_mix = decision.type == ScalingAllocated.event_type
    model: type[Decided] = ScalingAllocated if is_mix else ScalingDecided
    return model.model_validate(decision.body)


def demand_of(decision: ExplainedDecision) -> ScalingDemanded | None:
    """The total of a mix; None for a single target."""
    return ScalingDemanded.model_validate(decision.demand.body) if decision.demand else None


def holds(limiter: Limiter, *, mix: bool = False) -> str:
    """Why a limiter changes a number."""
    return HOLDS_A_MIX.get(limiter, HOLDS[limiter]) if mix else HOLDS[limiter]


def asked_for(record: DecisionRecord) -> MetricReading | None:
    """The metric that asks for most; None where none asks for anything."""
    wanting = [one for one in record.metrics if one.want is not None]
    return max(wanting, key=lambda one: one.want or 0, default=None)


def of_metric(one: MetricReading) -> str:
    """`waiting is 41.5 at 5 a replica`; what a replica carries may not be known yet."""
    a_replica = f" at {number(one.target)} a replica" if one.target else ""
    return f"{one.name} is {number(one.value)}{a_replica}"


def moved(record: DecisionRecord) -> Iterator[LimiterStep]:
    """The steps that changed the number, in order."""
    return (one for one in record.limiters if one.before != one.after)


def of_step(step: LimiterStep, *, mix: bool = False) -> str:
    """`8 → 4 by rate: the policy allows only so much change within one period (100 % in 15 s)`."""
    why = f"{holds(step.name, mix=mix)}{in_brackets(step.detail)}"
    return f"{step.before} → {step.after} by {step.name.value}: {why}"


def in_brackets(detail: str) -> str:
    """The numbers behind a statement, where there are any."""
    return f" ({detail})" if detail else ""


def unsettled(decision: ExplainedDecision) -> tuple[ApplyOutcome, str] | None:
    """Why a decision didn't take effect, as the last answer of any target says; None: it did."""
    last = {one.target: ScalingApplied.model_validate(one.body) for one in decision.answers}
    for answer in last.values():
        if answer.outcome not in _SETTLED:
            return answer.outcome, answer.message
    return None


def at_time(time_ms: int, now_ms: int) -> str:
    """`2026-11-20T14:49:57.000Z (in 12s)`."""
    return f"{format_time(time_ms)} (in {age(time_ms - now_ms)})"


def standing_lines(standing: Standing, now_ms: int) -> Iterator[str]:
    """What holds now: refusals, freezes, and when it is looked at again by itself."""
    for problem in standing.problems:
        yield f"the policy can't be used: {problem}"
    for one in standing.freezes:
        ends = "until somebody thaws it"
        if one.until_ms is not None:
            ends = f"until {at_time(one.until_ms, now_ms)}"
        yield f"{one.scope} is frozen by {one.who} {ends}: {one.why}"
    if standing.next_look_ms is not None:
        reason = standing.next_look_reason or "a timer"
        when = at_time(standing.next_look_ms, now_ms)
        yield f"the number may change by itself at {when}: {reason}"
