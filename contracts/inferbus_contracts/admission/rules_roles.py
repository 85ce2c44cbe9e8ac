"""Rules about roles that are scaled apart, and their ratio (autoscaling spec 1.6)."""

from collections.abc import Iterator

from inferbus_contracts.admission import rules_targets as targets
from inferbus_contracts.admission.paths import child
from inferbus_contracts.admission.rule import Finding, Rule, error
from inferbus_contracts.errors import ErrorCode
from inferbus_contracts.resources.autoscaling import AutoscalingPolicy
from inferbus_contracts.resources.scalars import parse_quantity
from inferbus_contracts.resources.scaling_targets import (
    DisaggregatedTarget,
    RatioConstraint,
    RoleScaling,
)

PATH = "spec.disaggregatedTarget"
_RATIO = f"{PATH}.ratioConstraint"


def roles_of(resource: AutoscalingPolicy) -> Iterator[tuple[str, RoleScaling]]:
    """Each role that is scaled apart, with its path."""
    split = resource.spec.disaggregated_target
    for name, role in (split.roles if split is not None else {}).items():
        yield child(f"{PATH}.roles", name), role


def role_names(resource: AutoscalingPolicy) -> Iterator[Finding]:
    """A role has a name."""
    split = resource.spec.disaggregated_target
    if split is not None and "" in split.roles:
        yield Finding(
            code=ErrorCode.BAD_NAME,
            field=f"{PATH}.roles",
            message="a role has no name",
            remedy="use the name of a role of the ModelServing",
        )


def bounds_ordered(resource: AutoscalingPolicy) -> Iterator[Finding]:
    """minReplicas is at most maxReplicas."""
    for path, role in roles_of(resource):
        yield from targets.bounds_ordered(role, path)


def metrics_readable(resource: AutoscalingPolicy) -> Iterator[Finding]:
    """A role whose bounds leave something to decide needs metrics and where they are read."""
    for path, role in roles_of(resource):
        metrics = role.metrics or resource.spec.metrics
        if not role.fixed and not metrics:
            yield Finding(
                code=ErrorCode.MISSING_FIELD,
                field=f"{path}.metrics",
                message="neither the role nor the policy has a metric to follow",
                remedy="add metrics, or make minReplicas equal to maxReplicas",
            )
        elif not role.fixed and not role.metric_sources:
            yield Finding(
                code=ErrorCode.MISSING_FIELD,
                field=f"{path}.metricSources",
                message="nothing says where the role's metrics are read",
                remedy="add an entry for each metric, e.g. {pod: {}}",
            )


def source_keys_known(resource: AutoscalingPolicy) -> Iterator[Finding]:
    """A role's sources are for its metrics."""
    for path, role in roles_of(resource):
        names = {metric.key for metric in role.metrics or resource.spec.metrics}
        for name in () if role.fixed else role.metric_sources:
            if names and name not in names:
                yield Finding(
                    field=child(f"{path}.metricSources", name),
                    message="the role has no metric of this name",
                    remedy=f"use one of {', '.join(sorted(names))}",
                )


def sources_well_formed(resource: AutoscalingPolicy) -> Iterator[Finding]:
    """Every source can be read."""
    for path, role in roles_of(resource):
        yield from targets.sources_well_formed(role.metric_sources, path)


def ratio_names_roles(resource: AutoscalingPolicy) -> Iterator[Finding]:
    """The two roles of a ratio exist and differ."""
    split = resource.spec.disaggregated_target
    ratio = split.ratio_constraint if split is not None else None
    if split is None or ratio is None:
        return
    named = {"numeratorRole": ratio.numerator_role, "denominatorRole": ratio.denominator_role}
    for field, role in named.items():
        if role not in split.roles:
            yield Finding(
                field=f"{_RATIO}.{field}",
                message="no such role is scaled here",
                value=role,
                remedy=f"use one of {', '.join(sorted(split.roles))}",
            )
    if ratio.numerator_role == ratio.denominator_role:
        yield Finding(
            field=f"{_RATIO}.denominatorRole",
            message="is the same role as numeratorRole",
            value=ratio.denominator_role,
            remedy="name the other role",
        )


def ratio_reachable(resource: AutoscalingPolicy) -> Iterator[Finding]:
    """Some pair of replicas within the bounds has a ratio within its bounds."""
    split = resource.spec.disaggregated_target
    ratio = split.ratio_constraint if split is not None else None
    if split is None or ratio is None:
        return
    for message in _ratio_faults(split, ratio):
        yield Finding(
            field=_RATIO,
            message=message,
            value=f"{ratio.min_ratio} to {ratio.max_ratio}",
            remedy="widen the ratio, or the bounds of the roles",
        )


def _ratio_faults(split: DisaggregatedTarget, ratio: RatioConstraint) -> Iterator[str]:
    least, most = parse_quantity(ratio.min_ratio), parse_quantity(ratio.max_ratio)
    if least < 0 or most <= 0 or least > most:
        yield "minRatio should be 0 or more, maxRatio above 0, and minRatio at most maxRatio"
        return
    numerator = split.roles.get(ratio.numerator_role)
    denominator = split.roles.get(ratio.denominator_role)
    if numerator is None or denominator is None:
        return
    if (numerator.min_replicas == 0) != (denominator.min_replicas == 0):
        yield "one role may go to zero and the other may not"
    if numerator.min_replicas > most * denominator.max_replicas:
        yield "the numerator has too many replicas even at its least"
    if denominator.min_replicas > 0 and numerator.max_replicas < least * denominator.min_replicas:
        yield "the numerator has too few replicas even at its most"


RULES: tuple[Rule, ...] = (
    error("AS-6a", "autoscaling 1.6 (6)", "it refers to no role", role_names),
    error("AS-6b", "autoscaling 1.6 (6)", "no number is within the bounds", bounds_ordered),
    error("AS-6c", "autoscaling 1.6 (6)", "the role could never follow load", metrics_readable),
    error(
        "AS-6d", "autoscaling 1.6 (6)", "a misspelt name, so a metric is lost", source_keys_known
    ),
    error("AS-6e", "autoscaling 1.4", "no value could be read", sources_well_formed),
    error("AS-7a", "autoscaling 1.6 (7)", "there is no such ratio", ratio_names_roles),
    error("AS-7b", "autoscaling 1.6 (7)", "no numbers of replicas satisfy it", ratio_reachable),
)
