"""A quantile of what a cumulative histogram counted since a baseline (autoscaling spec 2.8).

Compat rule: ranks are integers and the interpolation runs in float64 in the order of the
specification. Invariant: an impossible pair of snapshots is an error, never a number.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError


@dataclass(frozen=True)
class Histogram:
    """Cumulative (upper bound, count) pairs, bounds ascending, and the total count."""

    buckets: Sequence[tuple[float, int]] = ()
    count: int = 0


def quantile(percentile: int, now: Histogram, past: Histogram) -> float:
    """The value below which `percentile` (0 to 100) percent of the new observations lie.

    0.0 when nothing was observed since `past`. Raises `ProblemsError` when the histogram went
    backwards, changed its buckets, or holds no bucket for the rank.
    """
    observed = now.count - past.count
    if observed < 0:
        raise _broken("the count of a histogram went down: the pod was restarted", observed)
    if observed == 0:
        return 0.0
    if past.buckets and len(past.buckets) != len(now.buckets):
        raise _broken("a histogram changed the number of its buckets", len(now.buckets))
    rank = -(-observed * percentile // 100)
    return _interpolate(rank, now, past)


def _interpolate(rank: int, now: Histogram, past: Histogram) -> float:
    low, below = 0.0, 0
    for index, (bound, cumulative) in enumerate(now.buckets):
        reached = cumulative - (past.buckets[index][1] if past.buckets else 0)
        inside = reached - below
        if inside < 0:
            raise _broken("the buckets of a histogram don't grow together", reached)
        high = 2 * low if math.isinf(bound) else bound
        if inside > 0 and rank <= reached:
            return high - (reached - rank) * (high - low) / inside
        low, below = high, reached
    raise _broken("no bucket of the histogram holds the rank", rank)


def _broken(message: str, value: int) -> ProblemsError:
    return ProblemsError(
        Problem(
            code=ErrorCode.RULE_BROKEN,
            message=message,
            value=value,
            remedy="the sample is left out; the next one starts a new baseline",
        )
    )
