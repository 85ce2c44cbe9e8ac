"""From what people wrote to what the core reads: one scaling intent as policy facts."""

from collections.abc import Iterable, Mapping

from inferbus_autoscaler.facts import (
    Behaviour,
    MetricTarget,
    PanicPolicy,
    PolicyFacts,
    PolicyTarget,
    RatioFacts,
    StepPolicy,
)
from inferbus_contracts.canonical import digest
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.resources import annotations as names
from inferbus_contracts.resources.annotations import ApplyMode
from inferbus_contracts.resources.autoscaling import Behavior, StablePolicy
from inferbus_contracts.resources.autoscaling import PanicPolicy as WrittenPanic
from inferbus_contracts.resources.metric_sources import PolicyMetric
from inferbus_contracts.scaling.intents import IntentTarget, ScalingIntent

Annotations = Mapping[ObjectKey, Mapping[str, str]]
"""Annotations of targets by key."""


def read_policy(intent: ScalingIntent, targets: Annotations) -> PolicyFacts:
    """The facts of one intent; `targets` gives the annotations of those that exist."""
    metrics = intent.body.metrics
    if intent.targets[0].role is not None and not intent.joint:
        metrics = intent.targets[0].role.metrics or metrics
    capacities = _capacities(intent, targets)
    words = intent.annotations
    return PolicyFacts(
        key=str(intent.owner.key),
        uid=intent.owner.uid,
        generation=intent.policy.generation,
        digest=digest([intent.identity, intent.body.to_dict()]),
        metrics=_metrics(metrics),
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
        cost_expansion_rate_percent=intent.cost_expansion_rate_percent,
        compat=names.compat_of(words),
        apply=_apply_mode(words),
    )


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


def _capacities(intent: ScalingIntent, targets: Annotations) -> dict[ObjectKey, float]:
    """Capacity units of one replica: 1 is the smallest of the mix, which the metric speaks of.

    Targets are taken to be equal where one of them says nothing, or in another unit.
    """
    keys = [target.key for target in intent.targets]
    written = [targets.get(key.owner, {}).get(names.CAPACITY) for key in keys]
    known = [names.parse_capacity(text) for text in written if text]
    if not intent.mix or len(known) < len(keys) or len({item.unit for item in known}) > 1:
        return dict.fromkeys(keys, 1.0)
    least = min(item.per_second for item in known)
    return {key: item.per_second / least for key, item in zip(keys, known, strict=True)}


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
