"""What keeps a policy from scaling, in plain words (autoscaling spec D22).

The types are those of a HorizontalPodAutoscaler: `AbleToScale` (may replicas be changed),
`ScalingActive` (is anything known that they could be decided by), `ScalingLimited` (do bounds or
capacity keep them from what the load asks for). Invariant: a condition is a function of what is
known now; it clears by itself when its cause is gone.
"""

from collections.abc import Iterable, Iterator, Sequence

from inferbus_contracts.conditions import condition
from inferbus_contracts.events.route import ConditionFact
from inferbus_contracts.events.scaling import ApplyOutcome, Limiter, LimiterStep
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.resources.annotations import ApplyMode, apply_mode_of
from inferbus_contracts.scaling.intents import IntentTarget, ScalingIntent
from inferbus_spec_watcher.status.samples import STALE_MS
from inferbus_spec_watcher.status.sampling_conditions import SCALING_ACTIVE, scaling_active
from inferbus_spec_watcher.status.view import View, Wanted

ABLE_TO_SCALE = "AbleToScale"
SCALING_LIMITED = "ScalingLimited"
TYPES = frozenset({ABLE_TO_SCALE, SCALING_ACTIVE, SCALING_LIMITED})

Intents = Sequence[ScalingIntent]
Reason = tuple[str, str]
"""A word for programs, and a sentence for people."""


def scaling_conditions(intents: Intents, view: View) -> tuple[ConditionFact, ...]:
    """All three, for a policy that has the intents; none without any."""
    if not intents:
        return ()
    return (able_to_scale(intents, view), scaling_active(intents, view), limited(intents, view))


def next_look_ms(intents: Intents, view: View) -> int | None:
    """When something is to be said though nothing happened; None: never, as far as is known."""
    targets = [target.key for intent in intents for target in intent.targets]
    freezes = (view.freeze(key) for key in targets)
    ends_ms = [freeze.order.until_ms for freeze in freezes if freeze is not None]
    stale_ms = [view.sampled_ms(key) + STALE_MS + 1 for key in targets]
    due_ms = (at for at in (*ends_ms, *stale_ms) if at is not None and at > view.now_ms)
    return min(due_ms, default=None)


def able_to_scale(intents: Intents, view: View) -> ConditionFact:
    """Whether a number that is decided reaches the target."""
    for find in (_frozen, _unapproved, _advised, _failed):
        found = dict.fromkeys(
            reason
            for intent in intents
            for target in intent.targets
            if (reason := find(intent, target, view)) is not None
        )
        if found:
            return condition(ABLE_TO_SCALE, False, next(iter(found))[0], _sentences(found))
    return condition(ABLE_TO_SCALE, True, "ReadyForNewScale")


def _frozen(_: ScalingIntent, target: IntentTarget, view: View) -> Reason | None:
    freeze = view.freeze(target.key)
    return None if freeze is None else ("Frozen", str(freeze))


def _unapproved(intent: ScalingIntent, target: IntentTarget, view: View) -> Reason | None:
    wanted, answer = view.wanted_of(target.key), view.answer(target.key)
    if wanted is None or answer is None or answer.decision_id != wanted.decision_id:
        return None
    if answer.outcome is not ApplyOutcome.AWAITING_APPROVAL:
        return None
    about = intent.owner.key if intent.mix else target.key
    step = _step(target.key, wanted, view)
    return (
        "AwaitingApproval",
        f"{step} waits for approval: inferbus approve {about} --decision {wanted.decision_id} "
        "--why ...",
    )


def _advised(intent: ScalingIntent, target: IntentTarget, view: View) -> Reason | None:
    if apply_mode_of(intent.annotations) is not ApplyMode.ADVISE:
        return None
    wanted = view.wanted_of(target.key)
    advice = f"; advised is {_step(target.key, wanted, view)}" if wanted else ""
    return "AdviseOnly", f"the policy only advises and changes nothing{advice}"


def _failed(_: ScalingIntent, target: IntentTarget, view: View) -> Reason | None:
    answer, wanted = view.answer(target.key), view.wanted_of(target.key)
    if answer is None or wanted is None or answer.decision_id != wanted.decision_id:
        return None
    if answer.outcome is not ApplyOutcome.FAILED:
        return None
    return "ScaleFailed", f"{_step(target.key, wanted, view)} failed: {answer.message}"


def limited(intents: Intents, view: View) -> ConditionFact:
    """Whether bounds or capacity keep the replicas from what the load asks for."""
    found = dict.fromkeys(reason for intent in intents for reason in _limits(intent, view))
    if not found:
        return condition(SCALING_LIMITED, False, "DesiredWithinRange")
    return condition(SCALING_LIMITED, True, next(iter(found))[0], _sentences(found))


def _limits(intent: ScalingIntent, view: View) -> Iterator[Reason]:
    for target in intent.targets:
        wanted = view.wanted_of(target.key)
        steps = wanted.steps if wanted else ()
        about = intent.owner.key if intent.mix else target.key
        yield from (_short(about, step) for step in _moving(steps, Limiter.CAPACITY))
        if not intent.mix:
            yield from (_bounded(f"{about} needs", step) for step in _moving(steps, Limiter.BOUNDS))
    demand = view.demand(intent.owner.key) if intent.mix else None
    if demand is not None:
        needs = f"{intent.owner.key} needs, in capacity units,"
        yield from (_bounded(needs, step) for step in _moving(demand.steps, Limiter.BOUNDS))


def _moving(steps: Iterable[LimiterStep], limiter: Limiter) -> Iterator[LimiterStep]:
    """The first step of a limiter that changed the number."""
    moving = (one for one in steps if one.name is limiter and one.before != one.after)
    first = next(moving, None)
    if first is not None:
        yield first


def _short(about: ObjectKey, step: LimiterStep) -> Reason:
    return "InsufficientCapacity", f"{about} can't have what its load needs: {step.detail}"


def _bounded(needs: str, step: LimiterStep) -> Reason:
    if step.before > step.after:
        return "TooManyReplicas", f"{needs} {step.before}; maxReplicas allows {step.after}"
    return "TooFewReplicas", f"{needs} {step.before}; minReplicas asks for {step.after}"


def _step(target: ObjectKey, wanted: Wanted, view: View) -> str:
    return f"{target} {view.replicas(target)} → {wanted.replicas}"


def _sentences(reasons: Iterable[Reason]) -> str:
    return "; ".join(message for _, message in reasons)
