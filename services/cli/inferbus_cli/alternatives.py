"""Why a target hasn't some other number of replicas, and when that may change. Pure.

The steps of a decision are a chain of numbers, from what the load asks for to what was decided. The
step that leaps over a number is the one that keeps the target from it; where none does, the load
itself stops short of it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from inferbus_cli.phrases import (
    BECAME,
    ENDS,
    asked_for,
    body_of,
    demand_of,
    holds,
    in_brackets,
    of_metric,
    of_step,
    standing_lines,
    unsettled,
)
from inferbus_cli.units import number
from inferbus_contracts.api.console import ExplainedDecision
from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_contracts.events.scaling import (
    DecisionRecord,
    LimiterStep,
    ScalingAllocated,
    ScalingDecided,
)

LOAD = "load"
ANSWER = "answer"


@dataclass(frozen=True, slots=True, kw_only=True)
class WhyNot:
    """What keeps one target from a number."""

    target: str
    current: int
    desired: int
    wanted: int
    """The number that was asked about."""
    keeper: str
    """A limiter's name; `load`: the load asks for another number; `answer`: it was decided, but
    isn't in effect; empty: nothing does."""
    lines: tuple[str, ...]
    """The reasons, the first one first."""

    @property
    def headline(self) -> str:
        """What is so, in a sentence."""
        if self.desired == self.wanted:
            return f"{self.target} is to have {self.wanted}, and has {self.current}"
        return f"{self.target} is to have {self.desired}, not {self.wanted}"

    @property
    def text(self) -> str:
        """All of it."""
        return "\n".join([self.headline, *(f"  {line}" for line in self.lines)])


def why_not(
    decision: ExplainedDecision, now_ms: int, wanted: int | None = None, target: str = ""
) -> WhyNot:
    """What keeps a target from `wanted` replicas; from what its load asks for without a number.

    `target` names one target of a mix. Raises `ProblemsError` where a mix is asked about without.
    """
    body = body_of(decision)
    if isinstance(body, ScalingAllocated):
        return _of_mix(decision, body, now_ms, wanted, target)
    keeper, lines = _of_single(decision.key, body, wanted)
    asked = asked_for(body.record)
    fallback = asked.want if asked is not None and asked.want is not None else body.desired
    told = wanted if wanted is not None else fallback
    if told == body.desired:
        keeper, lines = _in_effect(decision)
    return WhyNot(
        target=decision.key,
        current=_current(decision, decision.key, body.current),
        desired=body.desired,
        wanted=told,
        keeper=keeper,
        lines=(*lines, *_now(decision, now_ms)),
    )


def targets_of(decision: ExplainedDecision, target: str, wanted: int | None) -> tuple[str, ...]:
    """The targets that a question is about: without a number, a mix stands for all of its own."""
    body = body_of(decision)
    if isinstance(body, ScalingAllocated):
        members = tuple(one.target for one in body.allocations)
        return (target,) if target in members or wanted is not None else members
    return (decision.key,)


def _of_single(
    target: str, body: ScalingDecided, wanted: int | None
) -> tuple[str, tuple[str, ...]]:
    record = body.record
    asked = asked_for(record)
    load = asked.want if asked is not None and asked.want is not None else body.current
    wanted = load if wanted is None else wanted
    step = _leap(record, load, wanted, body.desired)
    if step is not None:
        lines = [of_step(step)]
        if asked is not None:
            lines.append(f"the load needs {load}: {of_metric(asked)}")
        return step.name.value, (*lines, f"this may change {ENDS[step.name]}")
    return LOAD, tuple(_short_of(record, target, wanted, body.desired))


def _leap(record: DecisionRecord, load: int, wanted: int, desired: int) -> LimiterStep | None:
    """The step that leaps over `wanted`, on its way from `load` to `desired`."""
    if wanted == desired:
        return None
    rising = desired > wanted
    if load > wanted if rising else load < wanted:
        return None
    for step in record.limiters:
        leaps = step.before <= wanted < step.after if rising else step.after < wanted <= step.before
        if leaps:
            return step
    return None


def _short_of(record: DecisionRecord, target: str, wanted: int, desired: int) -> Iterator[str]:
    """Why the load itself doesn't ask for a number."""
    asking = [one for one in record.metrics if one.want is not None]
    if not asking:
        yield "no metric has a value, so nothing is known of the load and the number stays"
        return
    if wanted > desired:
        most = max(asking, key=lambda one: one.want or 0)
        enough = number((wanted - 1) * most.target)
        yield f"the load doesn't ask for it: {of_metric(most)}, which needs {most.want}"
        if most.target:
            yield f"{wanted} would be needed with {most.name} above {enough}"
    else:
        needing = [one for one in asking if (one.want or 0) > wanted]
        told = "; ".join(f"{of_metric(one)}, which needs {one.want}" for one in needing)
        yield f"the load needs more: {told or 'see `inferbus why`'}"
        yield from (
            f"{wanted} would do with {one.name} at {number(wanted * one.target)} or less"
            for one in needing
            if one.target
        )
    bounds = _bounds(record, target)
    if bounds is not None and not bounds[0] <= wanted <= bounds[1]:
        yield f"and the policy's bounds are {bounds[0]} to {bounds[1]}"


def _bounds(record: DecisionRecord, target: str) -> tuple[int, int] | None:
    """The bounds that were decided with; None where the record's decider doesn't tell them."""
    given: Any = record.input
    for name in ("facts", "policy", "targets"):
        given = given.get(name) if isinstance(given, Mapping) else None
    for one in given if isinstance(given, list) else ():
        if isinstance(one, Mapping) and one.get("key") == target:
            return int(one["min_replicas"]), int(one["max_replicas"])
    return None


def _in_effect(decision: ExplainedDecision) -> tuple[str, tuple[str, ...]]:
    """Why a number that was decided isn't what is there."""
    blocked = unsettled(decision)
    if blocked is None:
        settled = "it was applied" if decision.answers else "its answer is under way"
        return "", (f"nothing holds it back: {settled}",)
    outcome, message = blocked
    return ANSWER, (f"{BECAME[outcome]}{f': {message}' if message else ''}",)


def _current(decision: ExplainedDecision, target: str, before: int) -> int:
    """Replicas of the target's spec, as the last answer about it says."""
    answers = [one.body for one in decision.answers if one.target == target]
    return int(answers[-1]["replicas"]) if answers else before


def _now(decision: ExplainedDecision, now_ms: int) -> Iterator[str]:
    if decision.standing is not None:
        yield from standing_lines(decision.standing, now_ms)


def _of_mix(
    decision: ExplainedDecision,
    body: ScalingAllocated,
    now_ms: int,
    wanted: int | None,
    target: str,
) -> WhyNot:
    share = next((one for one in body.allocations if one.target == target), None)
    if share is None:
        raise ProblemsError(_which(decision, body))
    told = share.desired if wanted is None else wanted
    step = next((one for one in body.record.limiters if one.name is body.record.binding), None)
    lines = [f"the mix is chosen as a whole: it costs {body.cost}, at least {body.optimal_cost}"]
    demand = demand_of(decision)
    if demand is not None:
        lines.append(f"it must serve {number(demand.capacity)} capacity units")
        asked = asked_for(demand.record)
        lines += [f"the load needs {asked.want} of these: {of_metric(asked)}"] if asked else []
        option = next((one for one in demand.targets if one.target == target), None)
        if option is not None and not option.min_replicas <= told <= option.max_replicas:
            lines.append(f"its bounds are {option.min_replicas} to {option.max_replicas}")
    keeper = LOAD
    if step is not None:
        keeper = step.name.value
        lines.append(f"{keeper}: {holds(step.name, mix=True)}{in_brackets(step.detail)}")
    if told == share.desired:
        keeper, more = _in_effect(decision)
        lines += more
    return WhyNot(
        target=share.target,
        current=_current(decision, share.target, share.current),
        desired=share.desired,
        wanted=told,
        keeper=keeper,
        lines=(*lines, *_now(decision, now_ms)),
    )


def _which(decision: ExplainedDecision, body: ScalingAllocated) -> Problem:
    names = ", ".join(one.target for one in body.allocations)
    return Problem(
        code=ErrorCode.BAD_ARGUMENT,
        message="a mix has several targets",
        field="target",
        value=decision.key,
        remedy=f"name one of {names}",
    )
