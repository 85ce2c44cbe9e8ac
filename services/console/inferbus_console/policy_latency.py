"""Quantiles of the routers' latency histograms.

A quantile lies inside a bucket; where, is taken as if the observations were spread evenly over it,
as Prometheus' histogram_quantile does. Beyond the last bound nothing is known: it is the answer.
"""

from collections.abc import Iterable, Sequence

from inferbus_contracts.events.demand import LATENCY_BOUNDS_MS


def merged(histograms: Iterable[Sequence[int]]) -> list[int]:
    """The counts of several histograms together; an absent histogram (empty) counts nothing."""
    total = [0] * (len(LATENCY_BOUNDS_MS) + 1)
    for counts in histograms:
        for index, count in enumerate(counts):
            total[index] += count
    return total


def quantile_ms(counts: Sequence[int], share: float) -> float | None:
    """The value, milliseconds, below which `share` (0 to 1) of the observations lie.

    `counts` has one entry per bound of `LATENCY_BOUNDS_MS` and the last for all beyond. None
    without observations.
    """
    rank = share * sum(counts)
    if rank <= 0:
        return None
    below = 0
    lower = 0.0
    for bound, count in zip(LATENCY_BOUNDS_MS, counts, strict=False):
        if count and below + count >= rank:
            return lower + (bound - lower) * (rank - below) / count
        below += count
        lower = bound
    return float(LATENCY_BOUNDS_MS[-1])
