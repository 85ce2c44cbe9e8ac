"""One quantile out of the buckets of many pods.

Buckets are merged first: quantiles of pods can't be added up (autoscaling spec D16). Invariant:
pods with different bounds merge to counts that are never too high at any bound, so the quantile
never comes out too low.
"""

import math
from collections.abc import Sequence
from itertools import accumulate

from inferbus_metrics_collector.policy_series import Buckets

MergedBuckets = list[tuple[float, float]]
"""(upper bound, cumulative count), bounds ascending, +Inf last."""


def merge_buckets(pods: Sequence[Buckets]) -> MergedBuckets:
    """The cumulative counts of all pods together, at every bound that one of them has.

    Counts never fall from a bound to the next: a page is not read at one instant.
    """
    bounds = sorted(set().union(*pods))
    columns = [_at_bounds(buckets, bounds) for buckets in pods]
    counts = map(math.fsum, zip(*columns, strict=True))
    return list(zip(bounds, accumulate(counts, max), strict=True))


def quantile(share: float, buckets: MergedBuckets) -> float | None:
    """The value below which a `share` (0 to 1) of the observations lie.

    Linear inside a bucket, the first of which begins at zero; beyond the last finite bound it is
    that bound (as histogram_quantile of Prometheus). None without observations or finite bounds.
    """
    if len(buckets) < 2 or buckets[-1][1] == 0:
        return None
    rank = share * buckets[-1][1]
    low, below = min(buckets[0][0], 0.0), 0.0
    for bound, count in buckets[:-1]:
        if count >= rank and count > 0:
            return low + (bound - low) * (rank - below) / (count - below)
        low, below = bound, count
    return buckets[-2][0]


def _at_bounds(buckets: Buckets, bounds: list[float]) -> list[float]:
    """The counts at `bounds`; at one that the pod lacks, the count of its next lower bound."""
    if list(buckets) == bounds:
        return list(buckets.values())
    counts, last = [], 0.0
    for bound in bounds:
        last = buckets.get(bound, last)
        counts.append(last)
    return counts
