"""From what people wrote to what the core reads: one scaling intent as policy facts."""

from collections.abc import Iterable, Mapping
from fractions import Fraction

from inferbus_autoscaler.facts import (
    Behaviour,
    MetricTarget,
    ObjectiveFacts,
    PanicPolicy,
    PolicyFacts,
    PolicyTarget,
    RatioFacts,
    StepPolicy,
)
from inferbus_autoscaler.policy_mix import relative
from inferbus_contracts.canonical import digest
from inferbus_contracts.events.scaling import CapacitySource
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.resources import annotations as names
from inferbus_contracts.resources.annotations import CapacityUnit, Forecasting
from inferbus_contracts.resources.autoscaling import Behavior, StablePolicy
from inferbus_contracts.resources.autoscaling import PanicPolicy as WrittenPanic
from inferbus_contracts.resources.metric_sources import PolicyMetric
from inferbus_contracts.scaling.intents import IntentTarget, ScalingIntent

_LEAST_LATE_SHARE, _MOST_LATE_SHARE = 1e-5, 0.5
"""No finite fleet keeps a promise of 100 %; and of less than a half none is needed."""

Annotations = Mapping[ObjectKey, Mapping[str, str]]
"""Annotations of targets by key."""


Profiles = Mapping[ObjectKey, Fraction | None]
"""By target: what its accelerators promise of one replica, see `policy_profile`."""


def read_policy(
    intent: ScalingIntent, targets: Annotations, profiles: Profiles | None = None
) -> PolicyFacts:
    """The facts of one intent; `targets` gives the annotations of those that exist."""
    metrics = intent.body.metrics if intent.joint else intent.metrics_of(intent.targets[0])
    source, capacities = _capacities(intent, targets, profiles or {})
    words = intent.annotations
    return PolicyFacts(
        key=str(intent.owner.key),
        uid=intent.owner.uid,
        generation=intent.policy.generation,
        digest=digest([intent.identity, intent.body.to_dict()]),
        metrics=_metrics(metrics),
        objective=_objective(intent, targets),
        tolerance_percent=intent.body.tolerance_percent,
        behaviour=_behaviour(intent.body.behavior),
        targets=tuple(
            PolicyTarget(
                key=str(target.key),
                min_replicas=target.min_replicas,
                max_replicas=target.max_replicas,
                cost=target.cost,
                capacity=capacities[target.key],
                metrics=_own_metrics(target) if intent.joint else None,
            )
            for target in intent.targets
        ),
        mix=intent.mix,
        joint=intent.joint,
        ratio=_ratio(intent),
        capacity_source=source,
        cost_expansion_rate_percent=intent.cost_expansion_rate_percent,
        compat=names.compat_of(words),
        apply=names.apply_mode_of(words),
    )


def objective_facts(
    objective: names.Objective, capacity: names.Capacity | None, *, daily: bool = False
) -> ObjectiveFacts:
    """An objective as the core reads it; `capacity` is that of one replica, None where unknown.

    `daily`: forecasts may rest on the time of day.
    """
    late_share = (100 - objective.percent) / 100
    return ObjectiveFacts(
        late_share=min(max(late_share, _LEAST_LATE_SHARE), _MOST_LATE_SHARE),
        limit_ms=objective.limit_ms,
        metric=objective.metric,
        capacity=capacity.per_second if capacity else None,
        unit=capacity.unit if capacity else CapacityUnit.REQUESTS,
        daily=daily,
    )


def _objective(intent: ScalingIntent, targets: Annotations) -> ObjectiveFacts | None:
    """Of a policy that names no metric; a unit of a mix is its smallest replica."""
    text = intent.annotations.get(names.OBJECTIVE)
    if text is None or intent.body.metrics or intent.joint:
        return None
    written = [targets.get(target.key.owner, {}).get(names.CAPACITY) for target in intent.targets]
    known = [names.parse_capacity(one) for one in written if one]
    alike = len(known) == len(written) and len({one.unit for one in known}) == 1
    least = min(known, key=lambda one: one.per_second) if alike else None
    daily = intent.annotations.get(names.FORECAST) == Forecasting.DAILY
    return objective_facts(names.parse_objective(text), least, daily=daily)


def _metrics(written: Iterable[PolicyMetric]) -> tuple[MetricTarget, ...]:
    return tuple(MetricTarget(name=metric.key, target=metric.target) for metric in written)


def _own_metrics(target: IntentTarget) -> tuple[MetricTarget, ...] | None:
    """Of a role that brings its own; a fixed one has nothing to decide (autoscaling spec 5.1)."""
    role = target.role
    if role is None:
        return None
    if role.fixed:
        return ()
    return _metrics(role.metrics) if role.metrics else None


def _ratio(intent: ScalingIntent) -> RatioFacts | None:
    ratio = intent.ratio
    if ratio is None or not intent.joint:
        return None
    owner = intent.targets[0].key
    return RatioFacts(
        numerator=str(owner._replace(role=ratio.numerator_role)),
        denominator=str(owner._replace(role=ratio.denominator_role)),
        least=str(ratio.min_ratio),
        most=str(ratio.max_ratio),
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
