"""Rules about how the backends of a ModelBooster are scaled (modelbooster spec 1.5; ruling F14)."""

from collections.abc import Callable, Iterator, Sequence

from inferbus_contracts.admission import rules_policy as policy
from inferbus_contracts.admission.backends import backends_of
from inferbus_contracts.admission.paths import child
from inferbus_contracts.admission.rule import Finding, Findings, Rule, accepted, error, warning
from inferbus_contracts.errors import ErrorCode
from inferbus_contracts.resources.autoscaling import PolicyBody
from inferbus_contracts.resources.booster import ModelBooster
from inferbus_contracts.resources.metric_sources import PolicyMetric
from inferbus_contracts.resources.scalars import MAX_REPLICAS

LONGEST_GRACE_MS = 1_800_000


def _policies(resource: ModelBooster) -> Iterator[tuple[str, PolicyBody]]:
    if resource.spec.autoscaling_policy is not None:
        yield "spec.autoscalingPolicy", resource.spec.autoscaling_policy
    for path, backend in backends_of(resource):
        if backend.autoscaling_policy is not None:
            yield f"{path}.autoscalingPolicy", backend.autoscaling_policy


def _each_policy(
    check: Callable[[PolicyBody, str], Findings],
) -> Callable[[ModelBooster], Findings]:
    return lambda resource: (
        finding for path, body in _policies(resource) for finding in check(body, path)
    )


def _each_metric_list(
    check: Callable[[Sequence[PolicyMetric], str], Findings],
) -> Callable[[ModelBooster], Findings]:
    return _each_policy(lambda body, path: check(body.metrics, f"{path}.metrics"))


def replicas_given(resource: ModelBooster) -> Iterator[Finding]:
    """Both bounds, or a fixed number."""
    for path, backend in backends_of(resource):
        bounds = {"minReplicas": backend.min_replicas, "maxReplicas": backend.max_replicas}
        absent = [name for name, value in bounds.items() if value is None]
        if absent and (backend.replicas is None or len(absent) == 1):
            for name in absent:
                yield Finding(
                    code=ErrorCode.MISSING_FIELD,
                    field=child(path, name),
                    message="a required field is missing",
                    remedy="give both minReplicas and maxReplicas, or replicas alone",
                )


def bounds_ordered(resource: ModelBooster) -> Iterator[Finding]:
    """minReplicas is at most maxReplicas (MB-2)."""
    for path, backend in backends_of(resource):
        least, most = backend.bounds
        if least > most:
            yield Finding(
                field=f"{path}.minReplicas",
                message=f"is above maxReplicas ({most})",
                value=least,
                remedy="make minReplicas at most maxReplicas",
            )


def replicas_within_bounds(resource: ModelBooster) -> Iterator[Finding]:
    """`replicas` beside bounds is where to begin, so it should be within them."""
    for path, backend in backends_of(resource):
        least, most = backend.bounds
        if backend.replicas is not None and not least <= backend.replicas <= max(least, most):
            yield Finding(
                field=f"{path}.replicas",
                message=f"is outside the bounds {least} to {most}, which count",
                value=backend.replicas,
                remedy="remove replicas, or the bounds",
            )


def total_within_limit(resource: ModelBooster) -> Iterator[Finding]:
    """The maxima together (MB-2)."""
    total = sum(backend.bounds[1] for _, backend in backends_of(resource))
    if total > MAX_REPLICAS:
        yield Finding(
            code=ErrorCode.VALUE_OUT_OF_RANGE,
            field="spec.backends",
            message=f"the backends together may have {total} replicas, over {MAX_REPLICAS}",
            value=total,
            remedy="lower maxReplicas",
        )


def grace_within_limit(resource: ModelBooster) -> Iterator[Finding]:
    """Half an hour at the most (MB-1)."""
    for path, backend in backends_of(resource):
        if (backend.scale_to_zero_grace_period_ms or 0) > LONGEST_GRACE_MS:
            yield Finding(
                code=ErrorCode.VALUE_OUT_OF_RANGE,
                field=f"{path}.scaleToZeroGracePeriod",
                message="is longer than 30 minutes, which Kthena refuses",
                value=backend.scale_to_zero_grace_period,
                remedy="use at most 30m if the document should work there too",
            )


def settings_have_policy(resource: ModelBooster) -> Iterator[Finding]:
    """Settings of a mix need a policy of the whole booster (MB-7, ruling F14)."""
    spec = resource.spec
    if spec.autoscaling_policy is not None:
        return
    if spec.cost_expansion_rate_percent is not None:
        yield _without_policy("spec.costExpansionRatePercent", spec.cost_expansion_rate_percent)
    for path, backend in backends_of(resource):
        if backend.scaling_cost:
            yield _without_policy(f"{path}.scalingCost", backend.scaling_cost)
        if backend.scale_to_zero_grace_period is not None:
            field = f"{path}.scaleToZeroGracePeriod"
            yield _without_policy(field, backend.scale_to_zero_grace_period)


def _without_policy(field: str, value: int | str) -> Finding:
    return Finding(
        field=field,
        message="has no effect without spec.autoscalingPolicy",
        value=value,
        remedy="add spec.autoscalingPolicy, or remove it",
    )


def range_has_policy(resource: ModelBooster) -> Iterator[Finding]:
    """Different bounds need a policy that moves between them (MB-8, ruling F14)."""
    if resource.spec.autoscaling_policy is not None:
        return
    for path, backend in backends_of(resource):
        least, most = backend.bounds
        if least != most and backend.autoscaling_policy is None:
            yield Finding(
                field=f"{path}.maxReplicas",
                message=f"no policy scales the backend, so it stays at {least} replicas",
                value=most,
                remedy="add an autoscalingPolicy, or make maxReplicas equal to minReplicas",
            )


def mix_has_costs(resource: ModelBooster) -> Iterator[Finding]:
    """Backends that are scaled together are told apart by cost (MB-9)."""
    backends = list(backends_of(resource))
    if resource.spec.autoscaling_policy is None or len(backends) < 2:
        return
    for path, backend in backends:
        if backend.scaling_cost == 0:
            yield Finding(
                field=f"{path}.scalingCost",
                message="costs nothing, so all load goes to this backend first",
                value=0,
                remedy="set the cost of one replica",
            )


def policies_apart(resource: ModelBooster) -> Iterator[Finding]:
    """A policy of the whole and policies of its parts exclude each other (MB-10, ruling F14)."""
    for path, _ in list(_policies(resource)) if resource.spec.autoscaling_policy else ():
        if path != "spec.autoscalingPolicy":
            yield Finding(
                field=path,
                message="spec.autoscalingPolicy already scales this backend",
                remedy="keep either spec.autoscalingPolicy or the policies of the backends",
            )


RULES: tuple[Rule, ...] = (
    error("MB-REPLICAS", "modelbooster 1.2", "v0.1.0 requires both bounds", replicas_given),
    warning("MB-1", "modelbooster 1.5 (1)", "nothing depends on the limit", grace_within_limit),
    error("MB-2a", "modelbooster 1.5 (2)", "no number is within the bounds", bounds_ordered),
    warning("MB-2b", "modelbooster 1.5 (2)", "v0.1.0's schema accepts it", total_within_limit),
    warning("MB-2c", "modelbooster 1.2", "v0.1.0's fields win", replicas_within_bounds),
    warning("MB-7", "modelbooster 1.5 (7); ruling F14", "ignored", settings_have_policy),
    warning("MB-8", "modelbooster 1.5 (8); ruling F14", "stays at the least", range_has_policy),
    warning("MB-9", "modelbooster 1.5 (9)", "a mix without costs still works", mix_has_costs),
    accepted("MB-9b", "modelbooster 1.5 (7), (9)", "least replicas of 0 work: requests are held"),
    error("MB-10", "modelbooster 1.5 (10); ruling F14", "two would decide", policies_apart),
    error(
        "MB-AS-1a",
        "autoscaling 1.6 (1)",
        "no number of replicas reaches it",
        _each_metric_list(policy.targets_positive),
    ),
    error(
        "MB-AS-1b",
        "autoscaling 1.6 (1)",
        "a metric's name identifies it",
        _each_metric_list(policy.metric_names_unique),
    ),
    error("MB-AS-1c", "autoscaling 1.2", "unreadable", _each_metric_list(policy.metric_names)),
    warning(
        "MB-AS-1d",
        "autoscaling 1.2",
        "v0.1.0's spelling wins",
        _each_metric_list(policy.metric_names_agree),
    ),
    warning("MB-AS-2", "autoscaling 1.6 (2)", "works here", _each_policy(policy.windows_short)),
    error("MB-AS-5", "autoscaling 1.2", "nothing would move", _each_policy(policy.metrics_present)),
)
