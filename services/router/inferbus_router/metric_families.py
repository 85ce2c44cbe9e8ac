"""Prometheus families out of counters that the router keeps itself.

Invariant: names come with one of two prefixes: the reference's for what it has too, the project's
own for the rest.
"""

from collections.abc import Iterable, Sequence

from prometheus_client.core import HistogramMetricFamily

from inferbus_router.distribution import Distribution

REFERENCE = "kthena_router_"
OWN = "inferbus_router_"


def cumulative(bounds: Sequence[float], counts: Sequence[int]) -> list[tuple[str, float]]:
    """Buckets as Prometheus wants them; one more count than bounds."""
    total = 0
    buckets = []
    for bound, count in zip([*map(_shown, bounds), "+Inf"], counts, strict=True):
        total += count
        buckets.append((bound, float(total)))
    return buckets


def _shown(bound: float) -> str:
    return str(float(bound))


def distributions(
    name: str,
    text: str,
    labels: tuple[str, ...],
    rows: Iterable[tuple[tuple[str, ...], Distribution]] = (),
) -> HistogramMetricFamily:
    """One histogram for each row; a family without rows says that it is known and empty."""
    family = HistogramMetricFamily(name, text, labels=labels)
    for key, each in rows:
        family.add_metric(key, cumulative(each.bounds, each.counts), sum_value=each.sum)
    return family
