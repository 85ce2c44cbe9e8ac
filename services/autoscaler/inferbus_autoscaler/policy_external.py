"""One total out of the external values of several targets (autoscaling spec 3.1).

Compat rule: the name of a metric decides whether its values are added or averaged. Invariant:
plain left-to-right float64 additions, as upstream does them.
"""

from collections.abc import Sequence

RATIO_SUFFIXES = ("_utilization", "_usage", "_ratio", "_percent", "_saturation")
"""Names with these ends (in any case) are shares, weighed by replicas."""


def aggregate_external(name: str, values: Sequence[float], replicas: Sequence[int]) -> float:
    """The total of one metric; `values` and `replicas` belong together, one per target."""
    if not name.lower().endswith(RATIO_SUFFIXES):
        return _add(values)
    weight = sum(replicas)
    if weight == 0:
        return _add(values) / len(values)
    return _add([value * count for value, count in zip(values, replicas, strict=True)]) / weight


def _add(values: Sequence[float]) -> float:
    total = 0.0
    for value in values:  # not sum(): it compensates rounding errors since Python 3.12
        total += value
    return total
