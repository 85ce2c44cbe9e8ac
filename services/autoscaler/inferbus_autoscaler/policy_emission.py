"""Whether what was found is said: the log grows with decisions, not with samples.

A decision is made when number, mode or binding limiter changed, when the target isn't where it
should be, and again after a while as long as samples arrive. Invariant: no second decision while
one is being applied, unless that while is over.
"""

from dataclasses import replace

from inferbus_autoscaler.evaluation import Evaluation
from inferbus_autoscaler.facts import PolicyFacts
from inferbus_autoscaler.policy_limits import binding
from inferbus_autoscaler.state import LastDecision, TargetState
from inferbus_contracts.events.scaling import Limiter, Mode
from inferbus_contracts.resources.annotations import ApplyMode


def worth_saying(
    last: LastDecision | None,
    new: LastDecision,
    found: Evaluation,
    *,
    apply: ApplyMode,
    sampled: bool,
    repeat_ms: int,
) -> bool:
    """Whether `new` becomes a decision after `last`.

    `sampled` is False for timers and answers: these only ever change the number.
    """
    moves = new.desired != found.current
    if last is None:
        return sampled or moves
    repeats = sampled and new.decided_ms - last.decided_ms >= repeat_ms
    if last.applying:
        return repeats
    if new.desired != last.desired or (moves and apply is ApplyMode.AUTO and not new.options):
        return True
    return repeats or (sampled and _looks(new) != _looks(last))


def _looks(decision: LastDecision) -> tuple[Mode, Limiter, str]:
    """What is told anew when it changes.

    Inside the tolerance the metrics have what they ask for: noise around a whole number would
    otherwise be told with every sample.
    """
    binds = Limiter.NONE if decision.binding is Limiter.TOLERANCE else decision.binding
    return decision.mode, binds, decision.options


def decision_of(
    found: Evaluation, now_ms: int, *, apply: ApplyMode, options: str = ""
) -> LastDecision:
    """What would be remembered of a decision made now."""
    return LastDecision(
        desired=found.desired,
        mode=found.mode,
        binding=binding(found.steps),
        decided_ms=now_ms,
        options=options,
        applying=apply is ApplyMode.AUTO and not options and found.desired != found.current,
    )


def with_decision(
    state: TargetState, new: LastDecision, policy: PolicyFacts, now_ms: int
) -> TargetState:
    """The state after a decision that is said."""
    history = state.history
    if new.applying and state.compat is None:
        history = history.with_replicas(new.desired, now_ms, policy.most_stamps)
    return replace(state, decision=new, history=history)
