"""The autoscaler's core: `decide(state, event, facts, now_ms) -> (state, effects)`.

One synchronous pure function from an event to what should happen, like the activation of a durable
workflow: no clock, no randomness, no I/O. Invariants: the same input gives the same bytes; where
nothing that matters changed, the identical state comes back without any effect; a record's input
alone gives the same decision again.
"""

from dataclasses import replace

from inferbus_autoscaler.announce import announcement, options_digest
from inferbus_autoscaler.evaluation import Evaluation
from inferbus_autoscaler.events import Demanded, Event, Sampled
from inferbus_autoscaler.facts import Facts, PolicyFacts
from inferbus_autoscaler.outcomes import Decide, Demand, Effect
from inferbus_autoscaler.policy_compat import evaluate_compat
from inferbus_autoscaler.policy_default import (
    evaluate_again,
    evaluate_pending,
    evaluate_sample,
    next_change,
)
from inferbus_autoscaler.policy_emission import decision_of, with_decision, worth_saying
from inferbus_autoscaler.policy_limits import binding
from inferbus_autoscaler.policy_mix import counted_in, observed_mix, with_learned
from inferbus_autoscaler.policy_objective import evaluate_objective, next_look
from inferbus_autoscaler.policy_standing import NOT_NOW, after_answer, answered, with_live_targets
from inferbus_autoscaler.record import CoreInput
from inferbus_autoscaler.roles import decide_roles
from inferbus_autoscaler.state import TargetState
from inferbus_autoscaler.timers import timer_effects
from inferbus_contracts.deciding import Applied, ClearTimer, Woken, no_decision
from inferbus_contracts.events.scaling import DecisionRecord

Effects = tuple[Effect, ...]


def decide(
    state: TargetState, event: Event, facts: Facts, now_ms: int
) -> tuple[TargetState, Effects]:
    """The state after `event`, and what is to be done; `now_ms` is the key's virtual time.

    `facts.policy` must have passed `policy_check.problems_of`. A key without policy or target
    forgets everything.
    """
    policy = _live_policy(facts)
    if isinstance(event, Demanded) and not _heeds(policy, event):
        return state, ()
    if policy is None:
        return TargetState(), (ClearTimer(),) if state.timer_ms is not None else ()
    given = CoreInput(state=state, event=event, facts=facts, now_ms=now_ms)
    now_ms = max(now_ms, state.changed_ms)
    after = _owned(state, policy, facts)
    if policy.joint:
        return decide_roles(given, policy, after, now_ms)
    if policy.mix and policy.compat is None:
        if isinstance(event, Sampled):
            after = observed_mix(after, policy, facts, event, now_ms)
        policy = with_learned(policy, facts, after)
        after = counted_in(after, policy)
    found: Evaluation | None
    if isinstance(event, Demanded):
        after, found = _demanded(after, policy, facts, event, now_ms)
    elif isinstance(event, Sampled):
        after, found = _sampled(after, policy, facts, event, now_ms)
    elif isinstance(event, Applied):
        after, found = _applied(after, policy, facts, event, now_ms)
    else:
        after, found = _woken(after, policy, facts, event, now_ms)
    return _concluded(given, policy, after, found, now_ms)


def recompute(record: DecisionRecord) -> bytes:
    """Canonical JSON of the decision, computed again from nothing but its record's input.

    Equals the original bytes where `record.version` is this decider's. Raises `ProblemsError` when
    the input isn't one of this decider's, or gives no decision under these rules.
    """
    given = CoreInput.from_dict(record.input)
    _, effects = decide(given.state, given.event, given.facts, given.now_ms)
    for effect in effects:
        if isinstance(effect, Decide | Demand) and record.target in (None, effect.key):
            return effect.data.to_json()
    raise no_decision(record.version)


def _live_policy(facts: Facts) -> PolicyFacts | None:
    policy = facts.policy and with_live_targets(facts.policy, facts.targets)
    return policy if policy and policy.targets else None


def _heeds(policy: PolicyFacts | None, event: Demanded) -> bool:
    """Whether an event about traffic says anything to a policy."""
    if policy is None or policy.compat is not None:
        return False
    return policy.objective is not None or event.held > 0


def _demanded(
    state: TargetState, policy: PolicyFacts, facts: Facts, event: Demanded, now_ms: int
) -> tuple[TargetState, Evaluation | None]:
    if policy.objective is not None:
        return evaluate_objective(state, policy, facts, event, now_ms)
    return state, evaluate_pending(state, policy, facts, event.at_ms, now_ms)


def _owned(state: TargetState, policy: PolicyFacts, facts: Facts) -> TargetState:
    """The state, or a new one where policy or target were replaced by others of their name."""
    target = None if policy.mix else facts.target(policy.targets[0].key)
    owner = (policy.uid,) if target is None else (policy.uid, target.uid)
    if state.owner == owner:
        return state
    return TargetState(owner=owner, changed_ms=state.changed_ms)


def _sampled(
    state: TargetState, policy: PolicyFacts, facts: Facts, event: Sampled, now_ms: int
) -> tuple[TargetState, Evaluation | None]:
    if policy.compat is None:
        own = state if state.compat is None else replace(state, compat=None)
        if policy.objective is not None:
            return evaluate_objective(own, policy, facts, event, now_ms)
        return own, evaluate_sample(own, policy, facts, event, now_ms)
    last = state.decision
    if last and last.applying and now_ms - last.decided_ms < facts.settings.repeat_ms:
        return state, None
    if facts.policy is None or len(policy.targets) < len(facts.policy.targets):
        return state, None
    return state, evaluate_compat(state, policy, facts, event, now_ms)


def _applied(
    state: TargetState, policy: PolicyFacts, facts: Facts, event: Applied, now_ms: int
) -> tuple[TargetState, Evaluation | None]:
    target = facts.target(event.target)
    if target is None or target.uid != event.uid:
        return state, None
    after = answered(state, event)
    if after.decision is not None and event.decision_id == facts.decision_id and not policy.mix:
        after = replace(after, decision=after_answer(after.decision, event.outcome))
    if policy.compat is not None or event.outcome in NOT_NOW:
        return after, None
    return _again(after, policy, facts, event, now_ms)


def _woken(
    state: TargetState, policy: PolicyFacts, facts: Facts, event: Woken, now_ms: int
) -> tuple[TargetState, Evaluation | None]:
    if event.due_ms != state.timer_ms:
        return state, None
    after = replace(state, timer_ms=None)
    if policy.compat is not None:
        return after, None
    return _again(after, policy, facts, event, now_ms)


def _again(
    state: TargetState, policy: PolicyFacts, facts: Facts, event: Event, now_ms: int
) -> tuple[TargetState, Evaluation | None]:
    if policy.objective is not None:
        return evaluate_objective(state, policy, facts, event, now_ms)
    return state, evaluate_again(state, policy, facts, now_ms)


def _concluded(
    given: CoreInput,
    policy: PolicyFacts,
    after: TargetState,
    found: Evaluation | None,
    now_ms: int,
) -> tuple[TargetState, Effects]:
    """Decide whether what was found is said, and when to look again."""
    facts, said = given.facts, False
    if found is not None:
        options = options_digest(found.state, policy, facts)
        new = decision_of(found, now_ms, apply=policy.apply, options=options)
        said = worth_saying(
            found.state.decision,
            new,
            found,
            apply=policy.apply,
            sampled=isinstance(given.event, Sampled | Demanded),
            repeat_ms=facts.settings.repeat_ms,
        )
        after = with_decision(found.state, new, policy, now_ms) if said else found.state
        after = _with_timer(after, policy, facts, found, now_ms)
    if after == given.state:
        return given.state, ()
    after = replace(after, changed_ms=now_ms)
    effects = timer_effects(given, after, binding(found.steps) if found else "")
    if found is None or not said:
        return after, effects
    return after, (announcement(given, policy, found, after), *effects)


def _with_timer(
    state: TargetState, policy: PolicyFacts, facts: Facts, found: Evaluation, now_ms: int
) -> TargetState:
    timer_ms = None
    if policy.compat is None and found.limited:
        look = next_change if policy.objective is None else next_look
        timer_ms = look(state, policy, facts, now_ms)
    return state if timer_ms == state.timer_ms else replace(state, timer_ms=timer_ms)
