"""One metric over the pods of a target.

Invariant: the order of the pods makes no difference (autoscaling spec D15), and a pod whose number
is unusable is named, never counted as zero (D10).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from inferbus_contracts.events.metrics import MetricAggregate, MetricKind
from inferbus_metrics_collector.policy_quantile import merge_buckets, quantile
from inferbus_metrics_collector.policy_series import PodValue, Unusable

DEFAULT_QUANTILE = 0.95
"""Of a histogram, where nothing else is asked for (autoscaling spec 1.9)."""


@dataclass(frozen=True, slots=True)
class Aggregated:
    """What the pods say together, and what is wrong."""

    metric: MetricAggregate | None
    """None where no pod gave a value, or nothing was observed."""
    silent: frozenset[str] = frozenset()
    """Pods that should have given a value and didn't."""
    problems: tuple[str, ...] = ()
    passing: tuple[str, ...] = ()
    """Problems that the next rounds, or the next requests, will end."""
    window_ms: int = 0
    """The longest span between two readings; 0 for a gauge."""


def aggregate(
    name: str, pods: Mapping[str, PodValue | Unusable | None], share: float = DEFAULT_QUANTILE
) -> Aggregated:
    """The metric called `name` over `pods` (by pod name; None: its page has no such family).

    Gauges and rates are summed; of histograms the quantile at `share` (0 to 1) is taken after their
    buckets were merged. A family that only some pods have is summed over those.
    """
    values = {pod: value for pod, value in pods.items() if isinstance(value, PodValue)}
    unusable = {pod: value for pod, value in pods.items() if isinstance(value, Unusable)}
    silent = frozenset(unusable)
    problems = _reasons(name, unusable, is_passing=False)
    passing = _reasons(name, unusable, is_passing=True)
    if not values:
        absent = () if silent or not pods else (f"{name}: no pod has it on its page",)
        return Aggregated(None, silent, (*problems, *absent), passing)
    kinds = {value.kind for value in values.values()}
    if len(kinds) > 1:
        disagree = f"{name}: pods disagree about its type: {sorted(kinds)}"
        return Aggregated(None, silent, (*problems, disagree), passing)
    window_ms = max(value.span_ms for value in values.values())
    kind = kinds.pop()
    if kind is MetricKind.QUANTILE:
        metric = _quantile(name, values, share)
        if metric is None:
            passing = (*passing, f"{name}: no observation in a bounded bucket in {window_ms} ms")
        return Aggregated(metric, silent, problems, passing, window_ms)
    total = math.fsum(value.value for value in values.values())
    metric = MetricAggregate(name=name, kind=kind, value=total, pods=len(values))
    return Aggregated(metric, silent, problems, passing, window_ms)


def _reasons(name: str, pods: Mapping[str, Unusable], *, is_passing: bool) -> tuple[str, ...]:
    return tuple(
        f"{name}: pod {pod}: {value.reason}"
        for pod, value in sorted(pods.items())
        if value.is_passing is is_passing
    )


def _quantile(name: str, values: Mapping[str, PodValue], share: float) -> MetricAggregate | None:
    merged = merge_buckets([value.buckets for value in values.values() if value.buckets])
    value = quantile(share, merged)
    if value is None:
        return None
    return MetricAggregate(
        name=name,
        kind=MetricKind.QUANTILE,
        value=value,
        pods=len(values),
        buckets=merged[:-1],
        observations=merged[-1][1],
    )
