"""What a policy must fulfil before the core decides by it.

Admission has checked what its resource kind demands; this is what the rules here rest on, for
policies of any origin. Invariant: a policy without problems never makes the core divide by zero,
contradict itself, or write a record that is too large.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from inferbus_autoscaler.facts import MetricTarget, PolicyFacts, PolicyTarget, StepPolicy
from inferbus_autoscaler.policy_held_window import LONGEST_MS
from inferbus_autoscaler.stamps import MOST_STAMPS
from inferbus_autoscaler.worst_record import worst_record_bytes
from inferbus_contracts.deciding import MOST_RECORD_BYTES
from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_contracts.resources.annotations import FORECAST
from inferbus_contracts.resources.scalars import parse_quantity

_MOST_TOLERANCE_PERCENT = 100

_HISTORIES = (MOST_STAMPS, 96, 64, 48, 32, 24, 16, 12, 8)
"""Lengths of histories to try, in changes of a value."""


def problems_of(policy: PolicyFacts) -> tuple[Problem, ...]:
    """Everything that keeps the core from deciding by `policy`; empty when it may."""
    found = [
        *_metric_problems(policy, policy.metrics, "metrics"),
        *_objective_problems(policy),
        *_target_problems(policy),
        *_ratio_problems(policy),
        *_behaviour_problems(policy),
    ]
    if not 0 <= policy.tolerance_percent <= _MOST_TOLERANCE_PERCENT:
        found.append(
            _problem(policy, "tolerancePercent", policy.tolerance_percent, "must be 0 to 100")
        )
    if not found:
        size = worst_record_bytes(replace(policy, most_stamps=_HISTORIES[-1]))
        if size > MOST_RECORD_BYTES:
            found.append(_too_large(policy, size))
    return tuple(found)


def fitted(policy: PolicyFacts) -> PolicyFacts:
    """A policy without problems, with histories as long as its records have room for.

    A history that is full counts old extremes for longer than asked, never for less.
    """
    for most_stamps in _HISTORIES:
        fits = replace(policy, most_stamps=most_stamps)
        if worst_record_bytes(fits) <= MOST_RECORD_BYTES:
            return fits
    raise ProblemsError(_too_large(policy, worst_record_bytes(fits)))


def _too_large(policy: PolicyFacts, size_bytes: int) -> Problem:
    daily = policy.objective is not None and policy.objective.daily
    forecast = f"remove {FORECAST}, " if daily else ""
    return Problem(
        code=ErrorCode.TOO_LARGE,
        object=policy.key,
        message=f"a decision record could need {size_bytes} of {MOST_RECORD_BYTES} bytes",
        remedy=f"{forecast}use fewer metrics or targets, or split the policy",
    )


def _problem(policy: PolicyFacts, field: str, value: object, rule: str) -> Problem:
    return Problem(
        code=ErrorCode.VALUE_OUT_OF_RANGE,
        object=policy.key,
        field=field,
        value=value,
        message=f"the value {rule}",
        remedy="correct the policy; its targets keep their replicas until then",
    )


def _metric_problems(
    policy: PolicyFacts, metrics: Sequence[MetricTarget], where: str
) -> Iterator[Problem]:
    names = [metric.name for metric in metrics]
    for index, metric in enumerate(metrics):
        if not (metric.target > 0 and math.isfinite(metric.target)):
            field = f"{where}[{index}].targetValue"
            yield _problem(policy, field, str(metric.target), "must be above 0 and finite")
        if metric.name in names[:index]:
            yield _problem(policy, f"{where}[{index}].name", metric.name, "must be unique")


def _objective_problems(policy: PolicyFacts) -> Iterator[Problem]:
    asks = [policy.metrics, *(target.metrics for target in policy.targets)]
    fixed = all(target.fixed for target in policy.targets)
    if policy.objective is None and not fixed and not any(asks):
        rule = "must not be empty where there is no objective; roles can't be scaled by one"
        yield _problem(policy, "metrics", "[]", rule)


def _target_problems(policy: PolicyFacts) -> Iterator[Problem]:
    if not policy.targets or (len(policy.targets) > 1 and not (policy.mix or policy.joint)):
        count = len(policy.targets)
        yield _problem(policy, "targets", count, "must be one target, or a mix or roles of some")
    keys = [target.key for target in policy.targets]
    for index, target in enumerate(policy.targets):
        for name, value, rule in _broken_target_rules(policy, target):
            yield _problem(policy, f"targets[{index}].{name}", value, rule)
        yield from _metric_problems(policy, target.metrics or (), f"targets[{index}].metrics")
        if target.key in keys[:index]:
            yield _problem(policy, f"targets[{index}]", target.key, "must be unique")


def _ratio_problems(policy: PolicyFacts) -> Iterator[Problem]:
    ratio = policy.ratio
    if ratio is None:
        return
    keys = {target.key for target in policy.targets}
    if keys != {ratio.numerator, ratio.denominator}:
        named = f"{ratio.numerator}, {ratio.denominator}"
        yield _problem(policy, "ratioConstraint", named, "must name the two roles of the policy")
    least, most = parse_quantity(ratio.least), parse_quantity(ratio.most)
    if not (0 <= least <= most and most > 0):
        value = f"{ratio.least} to {ratio.most}"
        rule = "must run from 0 or more to more than 0, the smaller bound first"
        yield _problem(policy, "ratioConstraint", value, rule)


def _broken_target_rules(
    policy: PolicyFacts, target: PolicyTarget
) -> Iterator[tuple[str, object, str]]:
    low, high = target.min_replicas, target.max_replicas
    if low < 0:
        yield "minReplicas", low, "must be 0 or more"
    if low > high and policy.compat is None:
        yield "minReplicas", low, f"must not exceed maxReplicas ({high})"
    if target.cost < 0:
        yield "cost", target.cost, "must be 0 or more"
    if not (target.capacity > 0 and math.isfinite(target.capacity)):
        yield "capacity", str(target.capacity), "must be above 0 and finite"


def _behaviour_problems(policy: PolicyFacts) -> Iterator[Problem]:
    behaviour = policy.behaviour
    for name, steps in (
        ("scaleDown", behaviour.scale_down),
        ("scaleUp.stablePolicy", behaviour.scale_up),
    ):
        if steps is not None:
            yield from _step_problems(policy, f"behavior.{name}", steps)
    if behaviour.panic is not None:
        where = "behavior.scaleUp.panicPolicy"
        yield from _duration_problems(policy, f"{where}.period", behaviour.panic.period_ms)
        yield from _duration_problems(policy, f"{where}.panicModeHold", behaviour.panic.hold_ms)


def _step_problems(policy: PolicyFacts, where: str, steps: StepPolicy) -> Iterator[Problem]:
    yield from _duration_problems(policy, f"{where}.period", steps.period_ms)
    yield from _duration_problems(policy, f"{where}.stabilizationWindow", steps.stabilisation_ms)
    if steps.select not in ("Or", "And") and policy.compat is None:
        yield _problem(policy, f"{where}.selectPolicy", steps.select, "must be Or or And")
    for name, value in (("instances", steps.instances), ("percent", steps.percent)):
        if value < 0:
            yield _problem(policy, f"{where}.{name}", value, "must be 0 or more")


def _duration_problems(policy: PolicyFacts, field: str, value_ms: int) -> Iterator[Problem]:
    if not 0 <= value_ms <= LONGEST_MS:
        yield _problem(policy, field, f"{value_ms} ms", f"must be 0 to {LONGEST_MS} ms")
