"""The default decider's look at roles that are decided about together.

Each role is looked at as a target of its own, with its own history and limits; then the pair is
chosen that keeps both in proportion (`policy_joint`). Invariant: a role's number differs from what
it came to alone only by its last limiter, `ratio`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from inferbus_autoscaler.evaluation import Evaluation
from inferbus_autoscaler.events import Sampled
from inferbus_autoscaler.facts import Facts, PolicyFacts, PolicyTarget, RatioFacts
from inferbus_autoscaler.policy_default import evaluate_again, evaluate_sample, scope_of
from inferbus_autoscaler.policy_history import History
from inferbus_autoscaler.policy_joint import Choice, Fit, Share, choose
from inferbus_autoscaler.policy_limits import (
    Scope,
    Steps,
    expiries,
    limit,
    most_allowed,
    recommend,
)
from inferbus_autoscaler.policy_proportion import Band
from inferbus_autoscaler.state import RoleState, TargetState
from inferbus_contracts.events.scaling import Limiter, LimiterStep, Mode
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.resources.scalars import parse_quantity

Evaluations = tuple[Evaluation, ...]
"""One of each role, in the policy's order; their states are those of targets of their own."""

_WHY_NOT = {
    Fit.FITS: "",
    Fit.HELD: ", as every pair in proportion lacks replicas that are needed",
    Fit.IMPOSSIBLE: ", as no pair within the bounds is in proportion",
}


@dataclass(frozen=True)
class _Look:
    """One role with everything that its numbers over time follow from."""

    value: int
    """Recommended, before any limit that looks back."""
    history: History
    scope: Scope


def evaluate_roles(
    state: TargetState, policy: PolicyFacts, facts: Facts, sample: Sampled | None, now_ms: int
) -> Evaluations | None:
    """Look at a new sample, or (None) once more at the last one.

    None where a role has none, or one that is too old: nothing is decided about half of a pair.
    """
    found, every = [], _alone(policy)
    for member, alone in zip(policy.targets, every, strict=True):
        look = _looked(role_state(state, member), alone, facts, sample, now_ms)
        if look is None:
            return None
        found.append(look)
    if policy.ratio is None or facts.frozen:
        return tuple(found)
    looks = [
        _Look(_recommended(one), one.state.history, scope_of(one.state, alone, facts))
        for one, alone in zip(found, every, strict=True)
    ]
    choice = _chosen(policy.ratio, policy, looks, now_ms)
    return tuple(
        _in_proportion(one, look.value, number, _detail(policy.ratio, choice))
        for one, look, number in zip(
            found, looks, _by_member(policy.ratio, policy, choice), strict=True
        )
    )


def next_change_of_roles(
    state: TargetState, policy: PolicyFacts, facts: Facts, now_ms: int
) -> int | None:
    """When a number may change by itself: a window, panic or freeze ends; None: never."""
    looks = []
    for member, alone in zip(policy.targets, _alone(policy), strict=True):
        own = role_state(state, member)
        scope = scope_of(own, alone, facts)
        if member.fixed:
            looks.append(_Look(member.min_replicas, own.history, scope))
        elif own.reading is not None:
            value = recommend(own.reading.need, scope, own.history.recommended).value
            looks.append(_Look(value, own.history, scope))
    if len(looks) < len(policy.targets):
        return None
    if facts.frozen:
        return facts.frozen_until_ms
    times = sorted({at_ms for look in looks for at_ms in _expiries(look, now_ms)})
    settled = _numbers(policy, looks, now_ms) if times else ()
    return next((at for at in times if _numbers(policy, looks, at) != settled), None)


def role_state(state: TargetState, member: PolicyTarget) -> TargetState:
    """The state of one role as if it were a target of its own."""
    kept = next((role for role in state.roles if role.target == member.key), None)
    role = kept or RoleState(target=member.key)
    return replace(
        state,
        reading=role.reading,
        history=role.history,
        decision=role.decision,
        compat=role.compat,
        roles=(),
    )


def with_role_states(
    state: TargetState, policy: PolicyFacts, owns: Sequence[TargetState]
) -> TargetState:
    """The inverse of `role_state`, for all roles in the policy's order."""
    roles = (
        RoleState(
            target=member.key,
            reading=own.reading,
            history=own.history,
            decision=own.decision,
            compat=own.compat,
        )
        for member, own in zip(policy.targets, owns, strict=True)
    )
    return replace(state, roles=tuple(roles))


def role_policy(policy: PolicyFacts, member: PolicyTarget) -> PolicyFacts:
    """The policy as it applies to one role alone."""
    metrics = policy.metrics if member.metrics is None else member.metrics
    return replace(policy, targets=(member,), metrics=metrics, joint=False, ratio=None)


def _alone(policy: PolicyFacts) -> list[PolicyFacts]:
    return [role_policy(policy, member) for member in policy.targets]


def _looked(
    own: TargetState, alone: PolicyFacts, facts: Facts, sample: Sampled | None, now_ms: int
) -> Evaluation | None:
    if alone.targets[0].fixed:
        return fixed(own, alone, facts)
    if sample is None:
        return evaluate_again(own, alone, facts, now_ms)
    return evaluate_sample(own, alone, facts, sample, now_ms)


def fixed(own: TargetState, alone: PolicyFacts, facts: Facts) -> Evaluation:
    """A role whose bounds leave nothing to decide: no metrics, no history."""
    member, current = alone.targets[0], scope_of(own, alone, facts).current
    number = member.min_replicas
    steps: Steps = (
        LimiterStep(name=Limiter.BOUNDS, before=current, after=number, detail=f"fixed at {number}"),
    )
    if facts.frozen:
        thaws = LimiterStep(name=Limiter.FREEZE, before=number, after=current, detail="frozen")
        steps = (*steps, thaws)
    return Evaluation(
        state=own, current=current, desired=steps[-1].after, mode=Mode.STABLE, steps=steps
    )


def _recommended(found: Evaluation) -> int:
    """What the load asks for inside the bounds, before any limit that looks back."""
    return next(step.after for step in found.steps if step.name is Limiter.BOUNDS)


def _numbers(policy: PolicyFacts, looks: Sequence[_Look], at_ms: int) -> tuple[int, ...]:
    if policy.ratio is None:
        limited = (limit(look.value, look.history, look.scope, at_ms) for look in looks)
        return tuple(steps[-1].after for steps in limited)
    return _by_member(policy.ratio, policy, _chosen(policy.ratio, policy, looks, at_ms))


def _chosen(ratio: RatioFacts, policy: PolicyFacts, looks: Sequence[_Look], at_ms: int) -> Choice:
    shares = {
        member.key: _share(look, at_ms) for member, look in zip(policy.targets, looks, strict=True)
    }
    return choose(shares[ratio.numerator], shares[ratio.denominator], band(ratio))


def _share(look: _Look, at_ms: int) -> Share:
    """A role may go down to what stabilisation leaves it, and up as its rate allows."""
    scope = look.scope
    steps = limit(look.value, look.history, scope, at_ms)
    wanted, current = steps[-1].after, scope.bounded(scope.current)
    stabilised = next((s.after for s in steps if s.name is Limiter.STABILISATION), current)
    most = most_allowed(look.history, scope, at_ms)
    return Share(
        lowest=scope.min_replicas,
        highest=scope.max_replicas,
        current=current,
        wanted=wanted,
        floor=min(scope.bounded(stabilised), current, wanted),
        ceiling=max(most, current, wanted),
    )


def _expiries(look: _Look, now_ms: int) -> list[int]:
    """Of the role's own limits, and of those of what it gets for the other's sake."""
    times = expiries(look.value, look.history, look.scope, now_ms)
    return times + expiries(look.scope.max_replicas, look.history, look.scope, now_ms)


def _by_member(ratio: RatioFacts, policy: PolicyFacts, choice: Choice) -> tuple[int, ...]:
    numbers = {ratio.numerator: choice.numerator, ratio.denominator: choice.denominator}
    return tuple(numbers[member.key] for member in policy.targets)


def _in_proportion(found: Evaluation, value: int, number: int, detail: str) -> Evaluation:
    step = LimiterStep(name=Limiter.RATIO, before=found.desired, after=number, detail=detail)
    return replace(found, desired=number, limited=number != value, steps=(*found.steps, step))


def _detail(ratio: RatioFacts, choice: Choice) -> str:
    above, below = (ObjectKey.parse(key).role for key in (ratio.numerator, ratio.denominator))
    pair = f"{above}/{below} {ratio.least} to {ratio.most}: {choice.numerator}/{choice.denominator}"
    return pair + _WHY_NOT[choice.fit]


@lru_cache(maxsize=1024)
def band(ratio: RatioFacts) -> Band:
    """The exact proportions that a policy allows."""
    return Band(parse_quantity(ratio.least), parse_quantity(ratio.most))
