"""A histogram of numbers that are few a request: plugin times, shares of prompts that were found.

Invariant: every observation is in exactly one bucket, and in the sum.
"""

from bisect import bisect_left
from collections.abc import Sequence


class Distribution:
    """Counts per upper bound, the last beyond them, and the sum."""

    def __init__(self, bounds: Sequence[float]) -> None:
        """`bounds` are inclusive and rising."""
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def observe(self, value: float) -> None:
        """Add a value."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value
