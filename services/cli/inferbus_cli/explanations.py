"""A decision as people read it: what was seen, what held it back, what became of it. Pure."""

from collections.abc import Iterator

from inferbus_cli.tables import aligned
from inferbus_cli.units import age, number
from inferbus_contracts.api.console import ExplainedDecision
from inferbus_contracts.envelope import format_time
from inferbus_contracts.events.scaling import (
    ApplyOutcome,
    DecisionRecord,
    Limiter,
    Mode,
    ScalingAllocated,
    ScalingApplied,
    ScalingDecided,
)

Decided = ScalingDecided | ScalingAllocated

_HOLDS = {
    Limiter.DATA: "its samples are missing, partial or stale, and nothing is scaled down on those",
    Limiter.TOLERANCE: "the difference lies inside the policy's tolerance",
    Limiter.BOUNDS: "the policy's minimum and maximum allow no other number",
    Limiter.STABILISATION: "a more cautious answer of the stabilisation window still counts",
    Limiter.RATE: "the policy allows only so much change within one period",
    Limiter.PANIC: "while load jumps nothing is scaled down, and up only as panic allows",
    Limiter.RATIO: "the ratio between the roles has to be kept",
    Limiter.CAPACITY: "no more replicas can be scheduled",
    Limiter.FREEZE: "a person froze it",
}
_BECAME = {
    ApplyOutcome.APPLIED: "applied",
    ApplyOutcome.UNCHANGED: "the target had that number already",
    ApplyOutcome.CONFLICT: "not applied, the target had changed since; it is decided again",
    ApplyOutcome.FROZEN: "not applied, it is frozen",
    ApplyOutcome.AWAITING_APPROVAL: "waits for approval (`inferbus approve`)",
    ApplyOutcome.ADVISED: "not applied, the policy only advises",
    ApplyOutcome.FAILED: "failed",
}


def body_of(decision: ExplainedDecision) -> Decided:
    """The decision's body as its type."""
    is_mix = decision.type == ScalingAllocated.event_type
    model: type[Decided] = ScalingAllocated if is_mix else ScalingDecided
    return model.model_validate(decision.body)


def explain(decision: ExplainedDecision, now_ms: int) -> str:
    """Everything about one decision, in sections."""
    body = body_of(decision)
    return "\n".join(
        [
            *_headline(decision, body, now_ms),
            *_seen(body.record),
            *_limiters(body.record),
            *_outcomes(decision),
            *_origin(decision, body.record),
        ]
    )


def what_holds(decision: ExplainedDecision) -> str:
    """One sentence about the limiter that binds, or that none does."""
    body = body_of(decision)
    record = body.record
    is_now = _numbers(body)
    wants = [one.want for one in record.metrics if one.want is not None]
    wanted = f", its metrics ask for {max(wants)}" if wants else ""
    if record.binding is Limiter.NONE:
        free = "the metrics got what they ask for" if wants else "no metric asks for anything"
        because = _blocked(decision) or f"nothing holds it back: {free}"
        return f"{decision.key} {is_now}{wanted}; {because}."
    step = next((one for one in reversed(record.limiters) if one.name is record.binding), None)
    detail = f" ({step.detail})" if step and step.detail else ""
    moved = f" from {step.before} to {step.after}" if step and step.before != step.after else ""
    return (
        f"{decision.key} {is_now}{wanted}; {record.binding.value} holds it back{moved}: "
        f"{_HOLDS[record.binding]}{detail}."
    )


def _numbers(body: Decided) -> str:
    if isinstance(body, ScalingAllocated):
        shares = ", ".join(f"{one.target} {one.desired}" for one in body.allocations)
        return f"is to have {shares}"
    return f"has {body.current} replicas and is to have {body.desired}"


def _blocked(decision: ExplainedDecision) -> str:
    """Why a decision that nothing held back still didn't take effect."""
    done = (ApplyOutcome.APPLIED, ApplyOutcome.UNCHANGED)
    for answer in map(ScalingApplied.model_validate, reversed(decision.applied)):
        if answer.outcome not in done:
            message = f" ({answer.message})" if answer.message else ""
            return f"{_BECAME[answer.outcome]}{message}"
    return ""


def _headline(decision: ExplainedDecision, body: Decided, now_ms: int) -> Iterator[str]:
    ago = age(now_ms - decision.time_ms)
    if isinstance(body, ScalingAllocated):
        shares = [f"{one.target} {one.current} → {one.desired}" for one in body.allocations]
        yield f"{decision.key}  cost {body.cost}, at least {body.optimal_cost}"
        yield from (f"  {share}" for share in shares)
    else:
        mode = ", panic" if body.mode is Mode.PANIC else ""
        yield f"{decision.key}  {body.current} → {body.desired}{mode}"
    binding = body.record.binding
    held = "nothing held it back" if binding is Limiter.NONE else f"held by {binding.value}"
    yield f"decided {format_time(decision.time_ms)} ({ago} ago), {held}"
    if body.apply != "auto":
        yield f"the policy's mode is {body.apply}"


def _seen(record: DecisionRecord) -> Iterator[str]:
    yield ""
    yield "Seen"
    if not record.metrics:
        yield "  no metric gave a value"
        return
    rows = [
        (
            one.name,
            number(one.value) if one.value is not None else "missing",
            number(one.target),
            "nothing" if one.want is None else str(one.want),
            one.detail,
        )
        for one in record.metrics
    ]
    yield _indented(aligned(("METRIC", "VALUE", "TARGET", "WANTS", "DETAIL"), rows))


def _limiters(record: DecisionRecord) -> Iterator[str]:
    yield ""
    yield "Limiters, in order"
    if not record.limiters:
        yield "  none applied"
        return
    rows = [
        (
            f"{one.name.value}{' *' if one.name is record.binding else ''}",
            str(one.before),
            str(one.after),
            one.detail,
        )
        for one in record.limiters
    ]
    yield _indented(aligned(("LIMITER", "BEFORE", "AFTER", "DETAIL"), rows))
    if record.binding is not Limiter.NONE:
        yield f"  * the one that binds: {_HOLDS[record.binding]}"


def _outcomes(decision: ExplainedDecision) -> Iterator[str]:
    yield ""
    yield "What became of it"
    if not decision.applied:
        yield "  no answer yet"
    for answer in map(ScalingApplied.model_validate, decision.applied):
        message = f": {answer.message}" if answer.message else ""
        yield (
            f"  {_BECAME[answer.outcome]}{message} "
            f"({answer.replicas} replicas, generation {answer.generation})"
        )


def _origin(decision: ExplainedDecision, record: DecisionRecord) -> Iterator[str]:
    yield ""
    yield "Where it comes from"
    yield f"  decision  {decision.id}"
    yield f"  policy    {record.policy}"
    yield f"  decider   {record.decider} {record.version}"
    yield from (f"  cause     {cause}" for cause in record.causes)
    place = f"{decision.sequence}..{decision.sequence}"
    yield f"  record    inferbus replay --stream DECISIONS --sequence {place} -o json"


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())
