"""From what people wrote to what the core reads: one scaling intent as policy facts."""

from collections.abc import Mapping
from fractions import Fraction

from inferbus_autoscaler.facts import (
    Behaviour,
    MetricTarget,
    PanicPolicy,
    PolicyFacts,
    PolicyTarget,
    StepPolicy,
)
from inferbus_autoscaler.policy_mix import relative
from inferbus_contracts.canonical import digest
from inferbus_contracts.events.scaling import CapacitySource
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.resources import annotations as names
from inferbus_contracts.resources.annotations import ApplyMode
from inferbus_contracts.resources.autoscaling import Behavior, StablePolicy
from inferbus_contracts.resources.autoscaling import PanicPolicy as WrittenPanic
from inferbus_contracts.scaling.intents import ScalingIntent

Annotations = Mapping[ObjectKey, Mapping[str, str]]
"""Annotations of targets by key."""


Profiles = Mapping[ObjectKey, Fraction | None]
"""By target: what its accelerators promise of one replica, see `policy_profile`."""


def read_policy(
    intent: ScalingIntent, targets: Annotations, profiles: Profiles | None = None
) -> PolicyFacts:
    """The facts of one intent; `targets` gives the annotations of those that exist."""
    metrics = intent.body.metrics
    if intent.targets[0].role is not None:
        metrics = intent.targets[0].role.metrics or metrics
    source, capacities = _capacities(intent, targets, profiles or {})
    words = intent.annotations
    return PolicyFacts(
        key=str(intent.owner.key),
        uid=intent.owner.uid,
        generation=intent.policy.generation,
        digest=digest([intent.identity, intent.body.to_dict()]),
        metrics=tuple(MetricTarget(name=metric.key, target=metric.target) for metric in metrics),
        tolerance_percent=intent.body.tolerance_percent,
        behaviour=_behaviour(intent.body.behavior),
        targets=tuple(
            PolicyTarget(
                key=str(target.key),
                min_replicas=target.min_replicas,
                max_replicas=target.max_replicas,
                cost=target.cost,
                capacity=capacities[target.key],
            )
            for target in intent.targets
        ),
        mix=intent.mix,
        capacity_source=source,
        cost_expansion_rate_percent=intent.cost_expansion_rate_percent,
        compat=names.compat_of(words),
        apply=_apply_mode(words),
    )


def _capacities(
    intent: ScalingIntent, targets: Annotations, profiles: Profiles
) -> tuple[CapacitySource | None, dict[ObjectKey, float]]:
    """Capacity units of one replica, from the first source that knows all targets of the mix.

    Targets are taken to be equal where one of them says nothing, or in another unit, until what
    they serve has been learned.
    """
    keys = [target.key for target in intent.targets]
    if intent.mix:
        written = [targets.get(key.owner, {}).get(names.CAPACITY) for key in keys]
        known = [names.parse_capacity(text) for text in written if text]
        if len(known) == len(keys) and len({item.unit for item in known}) == 1:
            rates = (Fraction(item.per_second) for item in known)
            return CapacitySource.ANNOTATION, relative(dict(zip(keys, rates, strict=True)))
        promised = {key: rate for key in keys if (rate := profiles.get(key)) is not None}
        if len(promised) == len(set(keys)):
            return CapacitySource.PROFILE, relative(promised)
    return None, dict.fromkeys(keys, 1.0)


def _apply_mode(words: Mapping[str, str]) -> ApplyMode:
    value = words.get(names.MODE, ApplyMode.AUTO)
    return ApplyMode(value) if value in set(ApplyMode) else ApplyMode.ADVISE


def _behaviour(written: Behavior | None) -> Behaviour:
    if written is None:
        return Behaviour()
    up = written.scale_up
    return Behaviour(
        scale_down=_steps(written.scale_down),
        scale_up=_steps(up.stable_policy if up else None),
        panic=_panic(up.panic_policy if up else None),
    )


def _steps(written: StablePolicy | None) -> StepPolicy | None:
    if written is None:
        return None
    return StepPolicy(
        instances=written.instances,
        percent=written.percent,
        period_ms=written.period_ms,
        select=written.select_policy.value,
        stabilisation_ms=written.stabilization_window_ms,
    )


def _panic(written: WrittenPanic | None) -> PanicPolicy | None:
    if written is None:
        return None
    return PanicPolicy(
        threshold_percent=written.panic_threshold_percent,
        hold_ms=written.panic_mode_hold_ms,
        percent=written.percent,
        period_ms=written.period_ms,
    )
