"""Rules about the body of a policy, wherever it stands: metrics and time spans.

Every check takes the path of the body, because a ModelBooster embeds policies (autoscaling spec
1.6, modelbooster spec 1.6).
"""

from collections.abc import Iterator, Sequence

from inferbus_contracts.admission.paths import child
from inferbus_contracts.admission.repeated import repeated_names
from inferbus_contracts.admission.rule import Finding
from inferbus_contracts.errors import ErrorCode
from inferbus_contracts.resources.autoscaling import PolicyBody
from inferbus_contracts.resources.metric_sources import PolicyMetric
from inferbus_contracts.resources.scalars import parse_duration_ms

LONGEST_WINDOW_MS = 30 * 60 * 1000


def metric_names(metrics: Sequence[PolicyMetric], path: str) -> Iterator[Finding]:
    """Every metric needs a name."""
    for index, metric in enumerate(metrics):
        if not metric.key:
            yield Finding(
                code=ErrorCode.MISSING_FIELD,
                field=child(child(path, index), "metricName"),
                message="the metric has no name",
                remedy="add metricName (or name, its later spelling)",
            )


def metric_names_agree(metrics: Sequence[PolicyMetric], path: str) -> Iterator[Finding]:
    """Both spellings of the field should say the same."""
    for index, metric in enumerate(metrics):
        if metric.metric_name and metric.name and metric.metric_name != metric.name:
            yield Finding(
                field=child(child(path, index), "name"),
                message=f"metricName says {metric.metric_name!r}, which counts",
                value=metric.name,
                remedy="give the metric one name",
            )


def metric_names_unique(metrics: Sequence[PolicyMetric], path: str) -> Iterator[Finding]:
    """A metric's name identifies it."""
    named = ((child(path, index), metric.key) for index, metric in enumerate(metrics))
    return repeated_names(((field, name) for field, name in named if name), "metric")


def targets_positive(metrics: Sequence[PolicyMetric], path: str) -> Iterator[Finding]:
    """A replica has to carry some of the load."""
    for index, metric in enumerate(metrics):
        if metric.exact_target <= 0:
            yield Finding(
                code=ErrorCode.VALUE_OUT_OF_RANGE,
                field=child(child(path, index), "targetValue"),
                message="should be above 0: no number of replicas could reach it",
                value=metric.target_value,
                remedy="say how much of the metric one replica should carry",
            )


def metrics_present(body: PolicyBody, path: str) -> Iterator[Finding]:
    """Without metrics there is nothing to follow."""
    if not body.metrics:
        yield Finding(
            code=ErrorCode.MISSING_FIELD,
            field=child(path, "metrics"),
            message="the policy has no metric to follow",
            remedy="add at least one entry with metricName and targetValue",
        )


def windows_short(body: PolicyBody, path: str) -> Iterator[Finding]:
    """Upstream allows 30 minutes."""
    for field, value in _durations(body, path):
        if value is not None and parse_duration_ms(value) > LONGEST_WINDOW_MS:
            yield Finding(
                code=ErrorCode.VALUE_OUT_OF_RANGE,
                field=field,
                message="is longer than 30 minutes, which Kthena refuses",
                value=value,
                remedy="use at most 30m if the document should work there too",
            )


def _durations(body: PolicyBody, path: str) -> Iterator[tuple[str, str | None]]:
    behavior = body.behavior
    up = behavior.scale_up if behavior else None
    stables = {
        f"{path}.behavior.scaleDown": behavior.scale_down if behavior else None,
        f"{path}.behavior.scaleUp.stablePolicy": up.stable_policy if up else None,
    }
    for field, stable in stables.items():
        if stable is not None:
            yield f"{field}.period", stable.period
            yield f"{field}.stabilizationWindow", stable.stabilization_window
    if up is not None and up.panic_policy is not None:
        panic = f"{path}.behavior.scaleUp.panicPolicy"
        yield f"{panic}.period", up.panic_policy.period
        yield f"{panic}.panicModeHold", up.panic_policy.panic_mode_hold
