"""What keeps a policy from scaling, in plain words (autoscaling spec D22).

The types are those of a HorizontalPodAutoscaler: `AbleToScale` (may replicas be changed),
`ScalingActive` (is anything known that they could be decided by), `ScalingLimited` (do bounds or
capacity keep them from what the load asks for). Invariant: a condition is a function of what is
known now; it clears by itself when its cause is gone.
"""

from collections.abc import Iterable, Iterator, Sequence

from inferbus_contracts.conditions import condition
from inferbus_contracts.envelope import format_time
from inferbus_contracts.events.route import ConditionFact
from inferbus_contracts.events.scaling import ApplyOutcome, Limiter, LimiterStep
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.resources.annotations import ApplyMode, apply_mode_of
from inferbus_contracts.scaling.intents import IntentTarget, ScalingIntent
from inferbus_spec_watcher.status.samples import STALE_MS
from inferbus_spec_watcher.status.view import Sample, View, Wanted

ABLE_TO_SCALE = "AbleToScale"
SCALING_ACTIVE = "ScalingActive"
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
    wanted, answer = _wanted(target.key, view), view.answer(target.key)
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
    wanted = _wanted(target.key, view)
    advice = f"; advised is {_step(target.key, wanted, view)}" if wanted else ""
    return "AdviseOnly", f"the policy only advises and changes nothing{advice}"


def _failed(_: ScalingIntent, target: IntentTarget, view: View) -> Reason | None:
    answer, wanted = view.answer(target.key), _wanted(target.key, view)
    if answer is None or wanted is None or answer.decision_id != wanted.decision_id:
        return None
    if answer.outcome is not ApplyOutcome.FAILED:
        return None
    return "ScaleFailed", f"{_step(target.key, wanted, view)} failed: {answer.message}"


def scaling_active(intents: Intents, view: View) -> ConditionFact:
    """Whether the metrics say anything about the load."""
    measured = [intent for intent in intents if intent.metrics]
    if not measured:
        return condition(SCALING_ACTIVE, True, "FixedReplicas", "the bounds leave nothing open")
    for intent in measured:
        blind = _blind(intent, view)
        if blind is not None:
            return condition(SCALING_ACTIVE, False, *blind)
    gaps = dict.fromkeys(gap for intent in measured for gap in _gaps(intent, view))
    if gaps:
        told = f"{_sentences(gaps)}; nothing is scaled down on that"
        return condition(SCALING_ACTIVE, True, next(iter(gaps))[0], told)
    return condition(SCALING_ACTIVE, True, "ValidMetricFound")


def _blind(intent: ScalingIntent, view: View) -> Reason | None:
    """Why nothing at all is known of the load of an intent."""
    keys = [target.key for target in intent.targets]
    fresh = [key for key in keys if view.now_ms - view.sampled_ms(key) <= STALE_MS]
    names = ", ".join(map(str, keys))
    if not fresh:
        last_ms = max(view.sampled_ms(key) for key in keys)
        when = f"since {format_time(last_ms)}" if last_ms else "yet"
        return "NoSamples", f"{names} was not sampled {when}"
    samples = [sample for key in fresh if (sample := view.sample(key)) is not None]
    wanted = {metric.key for metric in intent.metrics}
    if any(sample.metrics & wanted for sample in samples):
        return None
    if all(view.replicas(key) == 0 for key in keys):
        said = f"{names} has no replicas and so no metric of pods; a request that is held wakes it"
        return "ScaledToZero", said
    told = "; ".join(problem for sample in samples for problem in sample.problems)
    metrics = ", ".join(sorted(wanted))
    return "NoMetricHasValue", f"no pod of {names} gives {metrics}{f': {told}' if told else ''}"


def _gaps(intent: ScalingIntent, view: View) -> Iterator[Reason]:
    """What is missing of the load of an intent."""
    wanted = {metric.key for metric in intent.metrics}
    samples = {target.key: view.sample(target.key) for target in intent.targets}
    known = {key: sample for key, sample in samples.items() if sample is not None}
    for key, sample in known.items():
        if sample.silent:
            yield "PodsDontAnswer", _silence(key, sample)
    unknown = wanted - frozenset[str]().union(*(one.metrics for one in known.values()))
    if unknown:
        yield "SomeMetricsMissing", f"there is no value of {', '.join(sorted(unknown))}"


def _silence(key: ObjectKey, sample: Sample) -> str:
    pods = ", ".join(sample.silent)
    why = f" ({'; '.join(sample.problems)})" if sample.problems else ""
    return f"{len(sample.silent)} of {sample.pods} pods of {key} don't answer: {pods}{why}"


def limited(intents: Intents, view: View) -> ConditionFact:
    """Whether bounds or capacity keep the replicas from what the load asks for."""
    found = dict.fromkeys(reason for intent in intents for reason in _limits(intent, view))
    if not found:
        return condition(SCALING_LIMITED, False, "DesiredWithinRange")
    return condition(SCALING_LIMITED, True, next(iter(found))[0], _sentences(found))


def _limits(intent: ScalingIntent, view: View) -> Iterator[Reason]:
    for target in intent.targets:
        wanted = _wanted(target.key, view)
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


def _wanted(target: ObjectKey, view: View) -> Wanted | None:
    """The last decision about this very target, not about a namesake before it."""
    stored, wanted = view.get(target.owner), view.wanted(target)
    return wanted if stored is not None and wanted and wanted.uid == stored.uid else None


def _step(target: ObjectKey, wanted: Wanted, view: View) -> str:
    return f"{target} {view.replicas(target)} → {wanted.replicas}"


def _sentences(reasons: Iterable[Reason]) -> str:
    return "; ".join(message for _, message in reasons)
