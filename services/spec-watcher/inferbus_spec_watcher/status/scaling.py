"""Status of policies and bindings (autoscaling spec 1.5, 4.4).

Both kinds get the fields that the newest API gives a policy; a policy that only bindings refer to
has nothing to tell but whether it was accepted.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

from inferbus_contracts.conditions import condition, whole_seconds
from inferbus_contracts.envelope import parse_time
from inferbus_contracts.errors import Problem
from inferbus_contracts.events.route import ConditionFact
from inferbus_contracts.events.scaling import Mode
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.resources.scaling_targets import RatioConstraint
from inferbus_contracts.scaling.intents import IntentTarget, ScalingIntent
from inferbus_shared.objects.picture import StoredObject
from inferbus_spec_watcher.status.accepted import accepted
from inferbus_spec_watcher.status.part import StatusPart
from inferbus_spec_watcher.status.sampling_conditions import METRICS_WHOLE, metrics_whole
from inferbus_spec_watcher.status.scaling_conditions import TYPES, scaling_conditions
from inferbus_spec_watcher.status.view import View

READY = "Ready"
TARGET_FOUND = "TargetFound"
RATIO_VIOLATED = "RatioConstraintViolated"
PASSING = TYPES | {RATIO_VIOLATED, METRICS_WHOLE}
"""They stand only as long as they are told."""

SINGLE = "homogeneousStatus"
MIX = "heterogeneousStatus"
ROLES = "disaggregatedStatus"


def scaling_status(key: ObjectKey, stored: StoredObject, view: View) -> StatusPart:
    """What scales, from how many to how many, or why nothing does."""
    intents = [intent for intent in view.settled.intents if intent.owner.key == key]
    problems = view.settled.problems.get(key, ())
    missing = [
        target.key
        for intent in intents
        for target in intent.targets
        if view.replicas(target.key) is None
    ]
    scales = bool(intents or problems)
    refused = view.refused(key)
    if refused is not None and refused.uid == stored.uid:
        problems = (*problems, *refused.problems)
    told = (_ready(problems, missing), *_found(intents, missing, view)) if scales else ()
    proportion = () if missing else tuple(_proportion(intents, view))
    passing = (
        *proportion,
        *metrics_whole(key, stored, intents, view),
        *scaling_conditions(intents, view),
    )
    return StatusPart(
        (accepted(stored.object), *told, *passing),
        _numbers(intents, stored.object.get("status") or {}, view),
        stored.generation,
        withdrawn=_withdrawn(passing, scales=scales),
    )


def _withdrawn(passing: Iterable[ConditionFact], *, scales: bool) -> frozenset[str]:
    """What was told and means nothing any more.

    A policy that lost its targets keeps what is known of them; one that scales nothing doesn't.
    """
    never = frozenset() if scales else frozenset({READY, TARGET_FOUND})
    return never | (PASSING - {one.type for one in passing})


def _ready(problems: Sequence[Problem], missing: Sequence[ObjectKey]) -> ConditionFact:
    if problems:
        return condition(READY, False, "ReconcileFailed", "; ".join(map(str, problems)))
    if missing:
        return condition(READY, False, "ReconcileFailed", "a target is missing")
    return condition(READY, True, "Reconciled")


def _found(
    intents: Sequence[ScalingIntent], missing: Sequence[ObjectKey], view: View
) -> tuple[ConditionFact, ...]:
    if not intents:
        return ()
    if missing:
        message = "; ".join(_absence(target, view) for target in missing)
        return (condition(TARGET_FOUND, False, "TargetInvalid", message),)
    return (condition(TARGET_FOUND, True, "TargetFound"),)


def _absence(target: ObjectKey, view: View) -> str:
    stored = view.get(target.owner) if target.role else None
    if stored is None:
        return f"there is no {target.owner}"
    roles = stored.object["spec"]["template"]["roles"]
    named = ", ".join(sorted(role["name"] for role in roles))
    return f"{target.owner} has no role {target.role}; its roles are {named}"


def _proportion(intents: Sequence[ScalingIntent], view: View) -> Iterator[ConditionFact]:
    """Whether the roles are to come out of proportion: what is decided, or what stands."""
    for intent in intents:
        ratio = intent.ratio
        targets = {target.key.role: target.key for target in intent.targets}
        named = (ratio.numerator_role, ratio.denominator_role) if ratio else ()
        keys = [targets[role] for role in named if role in targets]
        if ratio is None or len(keys) < len(named):
            continue
        above, below = (_coming(key, view) for key in keys)
        allowed = f"{ratio.min_ratio} to {ratio.max_ratio}"
        pair = f"{ratio.numerator_role}/{ratio.denominator_role} is {above}/{below}"
        if ratio.allows(above, below):
            yield condition(RATIO_VIOLATED, False, "InProportion", f"{pair}, within {allowed}")
            continue
        wanted = view.wanted_of(keys[0])
        why = f" ({wanted.ratio.detail})" if wanted and wanted.ratio else ""
        message = f"{pair}, outside of {allowed}{why}"
        yield condition(RATIO_VIOLATED, True, "OutOfProportion", message)


def _coming(target: ObjectKey, view: View) -> int:
    """The replicas that a target will have once what is decided is carried out."""
    wanted = view.wanted_of(target)
    return wanted.replicas if wanted and wanted.applies else view.replicas(target) or 0


def _numbers(
    intents: Sequence[ScalingIntent], previous: Mapping[str, Any], view: View
) -> dict[str, Any]:
    """One of the three forms of targets; the other two, of an earlier spec, go."""
    numbers: dict[str, Any] = dict.fromkeys((SINGLE, MIX, ROLES))
    if not intents:
        return numbers
    first = intents[0]
    if first.mix:
        before = {one["name"]: one for one in previous.get(MIX) or ()}
        demand = view.demand(first.owner.key)
        mode = demand.mode if demand else None
        numbers[MIX] = [
            _target(target, target.key.name, before.get(target.key.name), view, mode)
            for target in first.targets
        ]
    elif first.targets[0].role is not None:
        numbers[ROLES] = _roles(first, previous.get(ROLES) or {}, view)
    else:
        target = first.targets[0]
        numbers[SINGLE] = _target(target, target.key.name, previous.get(SINGLE), view)
    return numbers


def _roles(intent: ScalingIntent, previous: Mapping[str, Any], view: View) -> dict[str, Any]:
    before = {one["name"]: one for one in previous.get("roles") or ()}
    targets = intent.targets
    status: dict[str, Any] = {
        "roles": [
            _target(target, target.key.role, before.get(target.key.role), view)
            for target in targets
        ]
    }
    if intent.ratio is not None:
        status["ratioStatus"] = _ratio(intent.ratio, targets, view)
        status["ratioAdjusted"] = any(_is_adjusted(target.key, view) for target in targets)
    return status


def _is_adjusted(target: ObjectKey, view: View) -> bool:
    """Whether the proportion gave the role another number than it would have had alone."""
    wanted = view.wanted_of(target)
    step = wanted.ratio if wanted else None
    return step is not None and step.before != step.after


def _target(
    target: IntentTarget,
    name: str,
    previous: Mapping[str, Any] | None,
    view: View,
    mixed: Mode | None = None,
) -> dict[str, Any]:
    """`mixed` is the mode of the mix that the target is in."""
    stored = view.get(target.key.owner)
    uid = stored.uid if stored else ""
    current = view.replicas(target.key) or 0
    status: dict[str, Any] = {"name": name, "currentReplicas": current, "desiredReplicas": current}
    wanted = view.wanted_of(target.key)
    if wanted is not None:
        status["desiredReplicas"] = wanted.replicas
        mode = wanted.mode or mixed
        if mode is not None:
            status["mode"] = mode.value.capitalize()
    scaled = view.scaled(target.key)
    if scaled is not None and scaled.uid == uid:
        status["lastScaleTime"] = whole_seconds(scaled.at_ms)
    elif previous and previous["name"] == name and _is_since(stored, previous):
        status["lastScaleTime"] = previous["lastScaleTime"]
    return status


def _is_since(stored: StoredObject | None, previous: Mapping[str, Any]) -> bool:
    """Whether the time that was told is of this very target, and not of a namesake before it."""
    created = stored.object["metadata"].get("creationTimestamp") if stored else None
    return "lastScaleTime" in previous and (
        created is None or whole_seconds(parse_time(created)) <= previous["lastScaleTime"]
    )


def _ratio(ratio: RatioConstraint, targets: Sequence[IntentTarget], view: View) -> dict[str, Any]:
    numbers = {target.key.role: view.replicas(target.key) or 0 for target in targets}
    above, below = numbers.get(ratio.numerator_role, 0), numbers.get(ratio.denominator_role, 0)
    return {
        "numeratorRole": ratio.numerator_role,
        "denominatorRole": ratio.denominator_role,
        "currentRatio": _shortest(above / below) if below else "",
    }


def _shortest(number: float) -> str:
    """The shortest decimal that reads as the number, without an exponent (autoscaling spec 4.4)."""
    return f"{Decimal(repr(number)).normalize():f}"
