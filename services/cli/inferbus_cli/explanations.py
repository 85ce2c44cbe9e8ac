"""A decision as people read it: in short, then what was seen, what held it back, what came of it.

Pure. Whoever reads only the first lines knows the number, why it is that one, and what to do.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from inferbus_cli.phrases import (
    BECAME,
    Decided,
    asked_for,
    body_of,
    demand_of,
    holds,
    moved,
    of_metric,
    of_step,
    standing_lines,
    unsettled,
)
from inferbus_cli.tables import aligned
from inferbus_cli.units import age, clock_time, number
from inferbus_contracts.api.console import ExplainedDecision
from inferbus_contracts.envelope import format_time
from inferbus_contracts.events.scaling import (
    ApplyOutcome,
    DecisionRecord,
    Limiter,
    Mode,
    ScalingAllocated,
    ScalingApplied,
    ScalingDemanded,
)

_HEARD = {
    "sampled": "metrics.sampled",
    "applied": "scaling.applied",
    "woken": "a timer",
    "demanded": "scaling.demanded",
}
"""What a record calls the event that was decided upon, and what the log does."""


def explain(decision: ExplainedDecision, now_ms: int) -> str:
    """Everything about one decision, in sections; `now_ms` is virtual time."""
    body, demand = body_of(decision), demand_of(decision)
    return "\n".join(
        [
            *_headline(decision, body, now_ms),
            *_in_short(decision, body, demand, now_ms),
            *(_load(demand) if demand else _seen(body.record)),
            *_limiters(body.record, "Limiters, in order", mix=isinstance(body, ScalingAllocated)),
            *_outcomes(decision),
            *_origin(decision, body.record),
        ]
    )


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


def _in_short(
    decision: ExplainedDecision, body: Decided, demand: ScalingDemanded | None, now_ms: int
) -> Iterator[str]:
    yield ""
    yield "In short"
    mix = isinstance(body, ScalingAllocated)
    lines = [*_needs(demand.record if demand else body.record)]
    lines += (of_step(one) for one in moved(demand.record)) if demand else ()
    lines += (of_step(one, mix=mix) for one in moved(body.record))
    lines += _fate(decision)
    if decision.standing is not None:
        lines += standing_lines(decision.standing, now_ms)
    yield from (f"  {line}" for line in lines)


def _needs(record: DecisionRecord) -> Iterator[str]:
    most = asked_for(record)
    if most is None:
        yield "no metric has a value, so nothing is known of the load"
    else:
        yield f"the load needs {most.want}: {of_metric(most)}"


def _fate(decision: ExplainedDecision) -> Iterator[str]:
    """What a person has to know of a decision that is not in effect."""
    open_ = unsettled(decision)
    if open_ is None:
        return
    outcome, message = open_
    if outcome is ApplyOutcome.AWAITING_APPROVAL:
        yield (
            f"it waits for approval: inferbus approve {decision.key} --decision {decision.id} "
            "--why '...'"
        )
    else:
        yield f"{BECAME[outcome]}{f': {message}' if message else ''}"


def _load(demand: ScalingDemanded) -> Iterator[str]:
    """What a mix must serve, and how that came about."""
    yield from _seen(demand.record)
    yield from _limiters(demand.record, "Limiters of the total, in capacity units", mix=False)
    yield f"  so the mix must serve {number(demand.capacity)} capacity units"


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
    yield from _sample(record.input)


def _sample(given: Mapping[str, Any]) -> Iterator[str]:
    """When the sample was taken, and from how many pods."""
    sampled = given.get("sampled")
    if not isinstance(sampled, Mapping) or "taken_at_ms" not in sampled:
        return
    readings = [one for one in sampled.get("readings", ()) if isinstance(one, Mapping)]
    counts = {
        word: sum(int(one.get(f"{word}_pods", 0)) for one in readings)
        for word in ("ready", "missing", "unready", "failed")
    }
    words = {"missing": "didn't answer", "unready": "not ready", "failed": "failed"}
    others = "".join(f", {counts[word]} {text}" for word, text in words.items() if counts[word])
    yield f"  sampled {clock_time(int(sampled['taken_at_ms']))} from {counts['ready']} pods{others}"


def _limiters(record: DecisionRecord, title: str, *, mix: bool) -> Iterator[str]:
    yield ""
    yield title
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
        yield f"  * the one that binds: {holds(record.binding, mix=mix)}"


def _outcomes(decision: ExplainedDecision) -> Iterator[str]:
    yield ""
    yield "What became of it"
    if not decision.answers:
        yield "  no answer yet"
    several = len({one.target for one in decision.answers}) > 1
    for one in decision.answers:
        answer = ScalingApplied.model_validate(one.body)
        message = f": {answer.message}" if answer.message else ""
        about = f"{one.target} " if several else ""
        yield (
            f"  {clock_time(one.time_ms)}  {about}{BECAME[answer.outcome]}{message} "
            f"({answer.replicas} replicas, generation {answer.generation})"
        )


def _origin(decision: ExplainedDecision, record: DecisionRecord) -> Iterator[str]:
    yield ""
    yield "Where it comes from"
    heard = next((word for word in _HEARD if word in record.input), None)
    for index, cause in enumerate(record.causes):
        what = f"  {_HEARD[heard]}" if heard and index == 0 else ""
        yield f"  cause     {cause}{what}"
    if decision.demand is not None:
        yield f"  demand    {decision.demand.id}"
    yield f"  decision  {decision.id}"
    yield from (f"  answer    {one.id}" for one in decision.answers)
    yield f"  policy    {record.policy}"
    yield f"  decider   {record.decider} {record.version}"
    place = f"{decision.sequence}..{decision.sequence}"
    yield f"  record    inferbus replay --stream DECISIONS --sequence {place} -o json"


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())
