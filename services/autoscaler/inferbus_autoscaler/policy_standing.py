"""How many replicas a target has, as far as its decider is concerned.

Its own last decision while that is being applied; then what the reconciler answered; then the
target's spec, as soon as a newer generation than that of the answer is seen (DESIGN section 6).
Invariant: an old observation never undoes a newer answer.
"""

from dataclasses import replace

from inferbus_autoscaler.facts import PolicyFacts, TargetFacts
from inferbus_autoscaler.state import LastDecision, Standing, TargetState
from inferbus_contracts.deciding import Applied
from inferbus_contracts.events.scaling import ApplyOutcome

AGAIN = frozenset({ApplyOutcome.CONFLICT, ApplyOutcome.FAILED})
"""Answers after which the decision counts as never made."""

NOT_NOW = frozenset({ApplyOutcome.FAILED, ApplyOutcome.FROZEN})
"""Answers that are no ground to try at once: the next sample does."""


def standing(state: TargetState, target: TargetFacts) -> Standing:
    """The newest known replicas and generation of a target."""
    answered = state.standing(target.key)
    if answered is None or answered.uid != target.uid or target.generation > answered.generation:
        return Standing(
            target=target.key,
            uid=target.uid,
            generation=target.generation,
            replicas=target.replicas,
        )
    return answered


def current_replicas(state: TargetState, target: TargetFacts) -> int:
    """The current replicas of a single target."""
    last = state.decision
    return last.desired if last and last.applying else standing(state, target).replicas


def answered(state: TargetState, event: Applied) -> TargetState:
    """The state after the reconciler's answer; itself where the answer is older than known."""
    known = state.standing(event.target)
    if known is not None and known.uid == event.uid and known.generation > event.generation:
        return state
    new = Standing(
        target=event.target,
        uid=event.uid,
        generation=event.generation,
        replicas=event.replicas,
    )
    if new == known:
        return state
    others = tuple(other for other in state.standings if other.target != event.target)
    return replace(state, standings=tuple(sorted((*others, new), key=lambda s: s.target)))


def after_answer(decision: LastDecision, outcome: ApplyOutcome) -> LastDecision | None:
    """What is remembered of a decision once the reconciler answered it."""
    return None if outcome in AGAIN else replace(decision, applying=False)


def with_live_targets(policy: PolicyFacts, targets: tuple[TargetFacts, ...]) -> PolicyFacts:
    """The policy without targets that don't exist."""
    live = {target.key for target in targets if not target.deleted}
    if all(member.key in live for member in policy.targets):
        return policy
    return replace(policy, targets=tuple(member for member in policy.targets if member.key in live))
