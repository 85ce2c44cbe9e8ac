"""What one pod's page says about one metric.

A gauge is the sum of its series, a counter its increase per second, a histogram the increase of its
buckets; both increases start anew where a series went down (autoscaling spec 2.7, 2.8, D6, D16).
Invariant: a value is finite and not negative, or there is none and a reason.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from inferbus_contracts.events.metrics import MetricKind
from inferbus_metrics_collector.policy_history import Reading
from inferbus_metrics_collector.policy_labels import read_labels
from inferbus_metrics_collector.policy_scan import Family, FamilyType, Scan

Buckets = dict[float, float]
"""Cumulative count by upper bound, +Inf included."""

LARGEST_VALUE = 1e100
"""No measurement is larger, and sums of such values stay finite."""

MOST_BUCKETS = 512
"""Of one histogram; engines have some twenty."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PodValue:
    """One metric of one pod."""

    kind: MetricKind
    value: float = 0.0
    """Of a gauge, or per second of a counter."""
    buckets: Buckets | None = None
    """What a histogram counted in the span."""
    span_ms: int = 0
    """Between the two readings; 0 for a gauge."""


@dataclass(frozen=True, slots=True)
class Unusable:
    """The page names the metric but gives no number to work with."""

    reason: str


def pod_value(
    families: Sequence[str], now: Reading, past: Reading | None
) -> PodValue | Unusable | None:
    """The metric that the first of `families` on the page gives; None when the page has none.

    `past` is the reading to compare counters and histograms with.
    """
    family = _first(families, now.scan)
    if family is None:
        return None
    if family.type is FamilyType.SUMMARY:
        return Unusable(f"{family.name} is a summary, which can't be merged over pods")
    if not _is_plausible(family):
        return Unusable(f"{family.name} has a value that is negative, not finite or absurd")
    if family.type is FamilyType.GAUGE:
        return PodValue(kind=MetricKind.GAUGE, value=math.fsum(family.series.values()))
    before = None if past is None else past.scan.family(family.name)
    if past is None or before is None or not _is_comparable(family, before):
        return Unusable(f"{family.name} was read for the first time: no rate yet")
    span_ms = now.at_ms - past.at_ms
    if family.type is FamilyType.COUNTER:
        increase = counter_increase(family.series, before.series)
        return PodValue(kind=MetricKind.RATE, value=increase * 1000 / span_ms, span_ms=span_ms)
    buckets = bucket_increases(family.series, before.series)
    if isinstance(buckets, Unusable):
        return Unusable(f"{family.name} {buckets.reason}")
    return PodValue(kind=MetricKind.QUANTILE, buckets=buckets, span_ms=span_ms)


def counter_increase(now: dict[bytes, float], past: dict[bytes, float]) -> float:
    """How much the series grew together; one that is new, or went down, started at zero."""
    return math.fsum(
        value - before if (before := past.get(labels, 0.0)) <= value else value
        for labels, value in now.items()
    )


def bucket_increases(now: dict[bytes, float], past: dict[bytes, float]) -> Buckets | Unusable:
    """How much each bucket grew, summed over the series; values by label text.

    A series of which one bucket went down started at zero.
    """
    series: dict[bytes, list[tuple[float, float, float]]] = {}
    for text, count in now.items():
        labels = read_labels(text)
        if labels.bound is None:
            return Unusable("has a bucket without a bound")
        bucket = (labels.bound, count, past.get(text, 0.0))
        series.setdefault(labels.series, []).append(bucket)
    total: Buckets = {}
    if len(now) > MOST_BUCKETS * len(series):
        return Unusable(f"has more than {MOST_BUCKETS} buckets")
    for buckets in series.values():
        restarted = any(count < before for _, count, before in buckets)
        if all(bound != math.inf for bound, _, _ in buckets):
            return Unusable("has no +Inf bucket")
        for bound, count, before in buckets:
            total[bound] = total.get(bound, 0.0) + (count if restarted else count - before)
    return total


def _is_plausible(family: Family) -> bool:
    """No value is negative, and none not finite or huge: the sum would be, too."""
    values = family.series.values()
    return sum(values) <= LARGEST_VALUE and min(values) >= 0


def _is_comparable(now: Family, past: Family) -> bool:
    return past.type is now.type and _is_plausible(past)


def _first(families: Sequence[str], page: Scan) -> Family | None:
    for name in families:
        family = page.family(name)
        if family is not None:
            return family
    return None
