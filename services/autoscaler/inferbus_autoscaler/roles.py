"""The core where a policy's targets are roles that are decided about together.

One state, one look at all roles, and decisions that are said together. Invariant: while a decision
about one role is on its way, none is made about another, so that each pair that comes into force
was chosen as a pair.
"""

from collections.abc import Sequence
from dataclasses import replace

from inferbus_autoscaler.events import Demanded, Sampled
from inferbus_autoscaler.facts import Facts, PolicyFacts
from inferbus_autoscaler.outcomes import Decide, Effect
from inferbus_autoscaler.policy_default import scope_of
from inferbus_autoscaler.policy_emission import decision_of, with_decision, worth_saying
from inferbus_autoscaler.policy_limits import binding
from inferbus_autoscaler.policy_need import Need
from inferbus_autoscaler.policy_roles import (
    Evaluations,
    evaluate_roles,
    next_change_of_roles,
    role_policy,
    role_state,
    with_role_states,
)
from inferbus_autoscaler.policy_roles_compat import evaluate_roles_compat
from inferbus_autoscaler.policy_standing import NOT_NOW, after_answer, answered, standing
from inferbus_autoscaler.record import CoreInput, record_of
from inferbus_autoscaler.state import LastDecision, Reading, TargetState
from inferbus_autoscaler.timers import timer_effects
from inferbus_contracts.deciding import Applied, Woken
from inferbus_contracts.events.scaling import Limiter, ScalingDecided

Looked = tuple[TargetState, Evaluations | None]
"""The state after what was heard, and what all roles came to; None: nothing new."""


def decide_roles(
    given: CoreInput, policy: PolicyFacts, state: TargetState, now_ms: int
) -> tuple[TargetState, tuple[Effect, ...]]:
    """`core.decide` for roles; `policy` has those that exist, `state` is of its owner.

    Where one of them doesn't exist nothing is decided, as there is no pair.
    """
    facts, event = given.facts, given.event
    if facts.policy is None or len(policy.targets) < len(facts.policy.targets):
        return given.state, ()
    if isinstance(event, Demanded):
        after, found = _demanded(state, policy, facts, event, now_ms)
    elif isinstance(event, Sampled):
        after, found = _sampled(state, policy, facts, event, now_ms)
    elif isinstance(event, Applied):
        after, found = _applied(state, policy, facts, event, now_ms)
    else:
        assert isinstance(event, Woken), "no other event changes anything"
        after, found = _woken(state, policy, facts, event, now_ms)
    return _concluded(given, policy, after, found, now_ms)


def _demanded(
    state: TargetState, policy: PolicyFacts, facts: Facts, event: Demanded, now_ms: int
) -> Looked:
    """Requests are held: a role without replicas needs one."""
    owns, woken = [], False
    for member in policy.targets:
        own = role_state(state, member)
        if scope_of(own, role_policy(policy, member), facts).current == 0:
            own, woken = (
                replace(own, reading=Reading(need=Need(known=1.0), sampled_ms=event.at_ms)),
                True,
            )
        owns.append(own)
    if not woken:
        return state, None
    after = with_role_states(state, policy, owns)
    found = evaluate_roles(after, policy, facts, None, now_ms)
    return (state, None) if found is None else (after, found)


def _sampled(
    state: TargetState, policy: PolicyFacts, facts: Facts, event: Sampled, now_ms: int
) -> Looked:
    if policy.compat is None:
        roles = tuple(replace(role, compat=None) for role in state.roles)
        state = replace(state, roles=roles)
        return state, evaluate_roles(state, policy, facts, event, now_ms)
    if _waits(state, facts, now_ms, sampled=True):
        return state, None
    return state, evaluate_roles_compat(state, policy, facts, event, now_ms)


def _applied(
    state: TargetState, policy: PolicyFacts, facts: Facts, event: Applied, now_ms: int
) -> Looked:
    target = facts.target(event.target)
    if target is None or target.uid != event.uid:
        return state, None
    after = answered(state, event)
    if event.decision_id == facts.decision_ids.get(event.target):
        roles = tuple(
            replace(role, decision=after_answer(role.decision, event.outcome))
            if role.target == event.target and role.decision
            else role
            for role in after.roles
        )
        after = replace(after, roles=roles)
    waits = _waits(after, facts, now_ms, sampled=False)
    if policy.compat is not None or event.outcome in NOT_NOW or waits:
        return after, None
    return after, evaluate_roles(after, policy, facts, None, now_ms)


def _woken(
    state: TargetState, policy: PolicyFacts, facts: Facts, event: Woken, now_ms: int
) -> Looked:
    if event.due_ms != state.timer_ms:
        return state, None
    after = replace(state, timer_ms=None)
    if policy.compat is not None:
        return after, None
    return after, evaluate_roles(after, policy, facts, None, now_ms)


def _waits(state: TargetState, facts: Facts, now_ms: int, *, sampled: bool) -> bool:
    """Whether a decision about a role is on its way, and not for so long that it is repeated."""
    return any(
        role.decision.applying
        and not (sampled and now_ms - role.decision.decided_ms >= facts.settings.repeat_ms)
        for role in state.roles
        if role.decision is not None
    )


def _concluded(
    given: CoreInput,
    policy: PolicyFacts,
    after: TargetState,
    found: Evaluations | None,
    now_ms: int,
) -> tuple[TargetState, tuple[Effect, ...]]:
    """Decide which numbers are said, and when to look again."""
    said: list[int] = []
    binds = ""
    if found is not None:
        news = [decision_of(one, now_ms, apply=policy.apply) for one in found]
        said = _worth_saying(given, policy, after, found, news, now_ms)
        owns = [
            with_decision(one.state, news[index], policy, now_ms) if index in said else one.state
            for index, one in enumerate(found)
        ]
        after = with_role_states(after, policy, owns)
        after = replace(after, timer_ms=_timer(after, policy, given.facts, found, now_ms))
        binds = _binds(found)
    if after == given.state:
        return given.state, ()
    after = replace(after, changed_ms=now_ms)
    effects = timer_effects(given, after, binds)
    if found is None:
        return after, effects
    return after, (*_announcements(given, policy, found, after, said), *effects)


def _worth_saying(
    given: CoreInput,
    policy: PolicyFacts,
    state: TargetState,
    found: Evaluations,
    news: Sequence[LastDecision],
    now_ms: int,
) -> list[int]:
    """The indices of the roles about which something is said."""
    sampled = isinstance(given.event, Sampled)
    if _waits(state, given.facts, now_ms, sampled=sampled):
        return []
    return [
        index
        for index, member in enumerate(policy.targets)
        if worth_saying(
            role_state(state, member).decision,
            news[index],
            found[index],
            apply=policy.apply,
            sampled=sampled,
            repeat_ms=given.facts.settings.repeat_ms,
        )
    ]


def _timer(
    state: TargetState, policy: PolicyFacts, facts: Facts, found: Evaluations, now_ms: int
) -> int | None:
    if policy.compat is not None or not any(one.limited for one in found):
        return None
    return next_change_of_roles(state, policy, facts, now_ms)


def _binds(found: Evaluations) -> str:
    """The limiter of the first role that is held back."""
    limiters = (binding(one.steps) for one in found if one.limited)
    return next(limiters, Limiter.NONE).value


def _announcements(
    given: CoreInput,
    policy: PolicyFacts,
    found: Evaluations,
    after: TargetState,
    said: Sequence[int],
) -> tuple[Effect, ...]:
    """One decision per role that has something to say, of the object as its newest answer was."""
    targets = [given.facts.target(member.key) for member in policy.targets]
    stands = [standing(after, target) for target in targets if target is not None]
    generation = max(one.generation for one in stands)
    keys = [policy.targets[index].key for index in said]
    return tuple(
        Decide(
            key,
            ScalingDecided(
                current=found[index].current,
                desired=found[index].desired,
                mode=found[index].mode,
                apply=policy.apply.value,
                target_uid=stands[index].uid,
                target_generation=generation,
                companions=[other for other in keys if other != key] or None,
                record=record_of(
                    given, role_policy(policy, policy.targets[index]), found[index], after, key
                ),
            ),
        )
        for index, key in zip(said, keys, strict=True)
    )
