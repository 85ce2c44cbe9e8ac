"""What samples leave to decide by: `ScalingActive`, and whether they are whole: `MetricsWhole`.

Invariant: what is wrong with samples is told once, in `MetricsWhole`, by whoever takes them (ADR
0017); `ScalingActive` says only whether there is anything at all to decide by.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from inferbus_contracts.conditions import condition
from inferbus_contracts.envelope import format_time
from inferbus_contracts.events.route import ConditionFact
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.scaling.intents import ScalingIntent
from inferbus_shared.objects.picture import StoredObject
from inferbus_spec_watcher.status.samples import STALE_MS
from inferbus_spec_watcher.status.view import View

SCALING_ACTIVE = "ScalingActive"
METRICS_WHOLE = "MetricsWhole"

Intents = Sequence[ScalingIntent]


class _Load(NamedTuple):
    """What is measured in order to scale: of one target, of one role, or of all of a mix."""

    owner: ObjectKey
    targets: tuple[ObjectKey, ...]
    metrics: frozenset[str]
    """The policy's names; empty where an objective alone says what is needed."""

    @property
    def names(self) -> str:
        """Its targets."""
        return ", ".join(map(str, self.targets))


def scaling_active(intents: Intents, view: View) -> ConditionFact:
    """Whether the metrics say anything about the load."""
    loads = [load for intent in intents for load in _loads(intent)]
    if not loads:
        return condition(SCALING_ACTIVE, True, "FixedReplicas", "the bounds leave nothing open")
    for load in loads:
        blind = _blind(load, view)
        if blind is not None:
            return condition(SCALING_ACTIVE, False, *blind)
    return condition(SCALING_ACTIVE, True, "ValidMetricFound")


def metrics_whole(
    key: ObjectKey, stored: StoredObject, intents: Intents, view: View
) -> tuple[ConditionFact, ...]:
    """Whether all that scaling needs is sampled; nothing until it was looked at.

    `intents` are those that the object owns.
    """
    found = {
        sampler: assessed.problems
        for sampler, uid in _samplers(key, stored, intents, view).items()
        if (assessed := view.assessed(sampler)) is not None and assessed.policy_uid == uid
    }
    if not found:
        return ()
    problems = [
        text if sampler == key else f"{sampler}: {text}"
        for sampler in sorted(found)
        for text in found[sampler]
    ]
    if problems:
        return (condition(METRICS_WHOLE, False, "SamplesIncomplete", "; ".join(problems)),)
    return (condition(METRICS_WHOLE, True, "Sampled"),)


def _samplers(
    key: ObjectKey, stored: StoredObject, intents: Intents, view: View
) -> Mapping[ObjectKey, str]:
    """Uids of what is sampled for an object: itself, or the bindings that apply it."""
    bound = {
        intent.owner.key: intent.owner.uid
        for intent in view.settled.intents
        if intent.policy.key == key
    }
    told = bool(intents) or key in view.settled.problems
    return bound | ({key: stored.uid} if told else {})


def _loads(intent: ScalingIntent) -> Iterator[_Load]:
    owner = intent.owner.key
    groups = [intent.targets] if intent.mix else [(target,) for target in intent.targets]
    for group in groups:
        metrics = intent.metrics_of(group[0])
        if metrics or intent.by_objective(group[0]):
            names = frozenset(metric.key for metric in metrics)
            yield _Load(owner, tuple(target.key for target in group), names)


def _blind(load: _Load, view: View) -> tuple[str, str] | None:
    """Why nothing at all is known of a load: a word for programs, and a sentence for people."""
    fresh = [key for key in load.targets if view.now_ms - view.sampled_ms(key) <= STALE_MS]
    if not fresh:
        last_ms = max(view.sampled_ms(key) for key in load.targets)
        when = f"since {format_time(last_ms)}" if last_ms else "yet"
        return "NoSamples", f"{load.names} was not sampled {when}"
    measured = frozenset[str]().union(*map(view.measured, fresh))
    if measured & load.metrics or (measured and not load.metrics):
        return None
    if all(view.replicas(key) == 0 for key in load.targets):
        said = "has no replicas and so no metric of pods; a request that is held wakes it"
        return "ScaledToZero", f"{load.names} {said}"
    metrics = ", ".join(sorted(load.metrics)) or "a metric of its load"
    assessed = view.assessed(load.owner)
    why = f"; {METRICS_WHOLE} says why" if assessed and assessed.problems else ""
    return "NoMetricHasValue", f"no pod of {load.names} gives {metrics}{why}"
