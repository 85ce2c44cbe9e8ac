"""What one pod's page says about one metric.

A gauge is the sum of its series, a counter its increase per second, a histogram the increase of its
buckets; both increases start anew where a series went down (autoscaling spec 2.7, 2.8, D6, D16).
Invariant: a value is finite and not negative, or there is none and a reason.
"""

import math
import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from inferbus_contracts.events.metrics import MetricKind
from inferbus_metrics_collector.policy_history import Reading
from inferbus_shared.pages.labels import read_labels
from inferbus_shared.pages.scan import Family, FamilyType, Scan

Buckets = dict[float, float]
"""Cumulative count by upper bound, +Inf included."""

LARGEST_VALUE = 1e100
"""No measurement is larger, and sums of such values stay finite."""

MOST_BUCKETS = 512
"""Of one histogram; engines have some twenty."""

_REMEMBERED = 256
_MOST_REMEMBERED_TEXTS = 128
"""Together: what is remembered stays below some 40 MB, whatever pods send."""


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
    is_passing: bool = False
    """Whether the next reading will do: nothing is wrong with the page."""


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
    before = None if past is None else past.scan.family(family.name)
    if before is not None and before.type is not family.type:
        return Unusable(f"{family.name} was a {before.type} and is a {family.type} now")
    if family.type is FamilyType.GAUGE:
        return PodValue(kind=MetricKind.GAUGE, value=math.fsum(family.series.values()))
    if past is None or before is None or not _is_plausible(before):
        reason = f"{family.name} was read for the first time: no rate yet"
        return Unusable(reason, is_passing=True)
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
    texts = tuple(now)
    series = _remembered(texts) if len(texts) <= _MOST_REMEMBERED_TEXTS else _texts_by_bound(texts)
    if isinstance(series, Unusable):
        return series
    total: Buckets = {}
    for buckets in series:
        counts = [now[text] for text in buckets.values()]
        before = [past.get(text, 0.0) for text in buckets.values()]
        restarted = any(map(operator.lt, counts, before))
        increases = counts if restarted else map(operator.sub, counts, before)
        for bound, increase in zip(buckets, increases, strict=True):
            total[bound] = total.get(bound, 0.0) + increase
    return total


_Series = tuple[dict[float, bytes], ...]
"""The label texts of each series of a histogram, by the bound of the bucket."""


@lru_cache(maxsize=_REMEMBERED)
def _remembered(texts: tuple[bytes, ...]) -> _Series | Unusable:
    """As `_texts_by_bound`; the pods of a model have the same texts, scrape after scrape."""
    return _texts_by_bound(texts)


def _texts_by_bound(now: Iterable[bytes]) -> _Series | Unusable:
    series: dict[bytes, dict[float, bytes]] = {}
    for text in now:
        labels = read_labels(text)
        if labels.bound is None:
            return Unusable("has a bucket without a bound")
        series.setdefault(labels.series, {})[labels.bound] = text
    for texts in series.values():
        if len(texts) > MOST_BUCKETS:
            return Unusable(f"has more than {MOST_BUCKETS} buckets")
        if math.inf not in texts:
            return Unusable("has no +Inf bucket")
    return tuple(series.values())


def _is_plausible(family: Family) -> bool:
    """No value is negative, and none not finite or huge: the sum would be, too."""
    values = family.series.values()
    return sum(values) <= LARGEST_VALUE and min(values) >= 0


def _first(families: Sequence[str], page: Scan) -> Family | None:
    for name in families:
        family = page.family(name)
        if family is not None:
            return family
    return None
