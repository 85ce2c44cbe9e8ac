"""How many replicas the metrics ask for, exactly as Kthena's autoscaler computes it.

This is the compat rule (autoscaling spec 2.10), kept bit for bit with its known defects; the
decider's own rule is `policy_need`. Invariant: every float64 operation happens in the order of the
specification, so that the same input gives the same integer as upstream's binary.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

MOST_WANTED = 1_000_000_000
"""Upstream's cap of a raw recommendation (autoscaling spec 1.9)."""

UP, DOWN = 1, -1


@dataclass(frozen=True, kw_only=True)
class RecommendationInput:
    """What one loop knows before it recommends."""

    min_replicas: int
    max_replicas: int
    current: int
    tolerance_percent: int
    targets: Mapping[str, float]
    """What one replica should carry, by metric name."""
    entries: Sequence[Mapping[str, float]]
    """Sums over the pods of each target: one entry, or one per target of a mix."""
    unready_pods: int = 0
    external_totals: Mapping[str, float] = field(default_factory=dict)
    """Values that no pod gave; they win over pod values of the same name."""


def recommend(given: RecommendationInput) -> int | None:
    """Replicas inside the bounds, or None where no metric gave a value ("skip").

    A current number outside the bounds is brought back whatever the metrics say.
    """
    want = _raw_want(given)
    return None if want is None else clamp(want, given.min_replicas, given.max_replicas)


def metric_wants(given: RecommendationInput) -> dict[str, int | None]:
    """What each metric asks for; None where it has no value."""
    tolerance = float(given.tolerance_percent) * 0.01
    return {name: _metric_want(given, name, tolerance) for name in given.targets}


def clamp(value: int, low: int, high: int) -> int:
    """`value` inside the bounds; where they contradict each other the upper one wins."""
    return min(max(value, low), high)


def divide(numerator: float, denominator: float) -> float:
    """Division of IEEE 754: by zero it gives an infinity or NaN where Python raises."""
    if denominator:
        return numerator / denominator
    if numerator == 0 or math.isnan(numerator):
        return math.nan
    return math.copysign(math.inf, numerator) * math.copysign(1.0, denominator)


def ceiling(replicas: float) -> int:
    """The next whole number from 0 to `MOST_WANTED`; NaN counts as 0."""
    if math.isnan(replicas) or replicas <= 0:
        return 0
    return MOST_WANTED if replicas >= MOST_WANTED else math.ceil(replicas)


def _raw_want(given: RecommendationInput) -> int | None:
    if given.current < given.min_replicas:
        return given.min_replicas
    if given.current > given.max_replicas:
        return given.max_replicas
    return max((want for want in metric_wants(given).values() if want is not None), default=None)


def _metric_want(given: RecommendationInput, name: str, tolerance: float) -> int | None:
    target = given.targets[name]
    if name in given.external_totals:
        return _external_want(given.external_totals[name], target, given.current, tolerance)
    values = [entry[name] for entry in given.entries if name in entry]
    if not values:
        return None
    total = 0.0
    for value in values:  # not sum(): it compensates rounding errors since Python 3.12
        total += value
    return _pods_want(
        total=total,
        present=len(values),
        absent=len(given.entries) - len(values),
        target=target,
        unready=given.unready_pods,
        current=given.current,
        tolerance=tolerance,
    )


def _external_want(value: float, target: float, current: int, tolerance: float) -> int:
    replicas = divide(value, target)
    ratio = divide(replicas, float(current))
    return current if abs(ratio - 1) <= tolerance else ceiling(replicas)


def _pods_want(
    *,
    total: float,
    present: int,
    absent: int,
    target: float,
    unready: int,
    current: int,
    tolerance: float,
) -> int:
    ratio = divide(total / present, target)
    counts_unready = unready > 0 and _direction(ratio) == UP
    if not counts_unready and absent == 0:
        return current if abs(ratio - 1) <= tolerance else ceiling(ratio * present)
    count = present + absent
    if _direction(ratio) == DOWN:
        total += absent * target
    if counts_unready:
        count += unready
    weighed = divide(total / count, target)
    if abs(weighed - 1) <= tolerance or _direction(ratio) != _direction(weighed):
        return current
    want = ceiling(weighed * count)
    contradicts = want > current if _direction(weighed) == DOWN else want < current
    return current if contradicts else want


def _direction(ratio: float) -> int:
    return UP if ratio >= 1 else DOWN
