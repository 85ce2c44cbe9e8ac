"""Which whole numbers of two roles are in proportion, exactly, and which is the next one that is.

The proportions of a `Band` are a cone of points (numerator, denominator) with rational edges. A
numerator has a partner where a whole denominator lies between the edges; with narrow edges few
numerators do. They are found by counting the points of the cone, in time that grows with the
logarithm of the bounds, so that a million replicas cost what ten do.
"""

from bisect import bisect_left
from dataclasses import dataclass
from fractions import Fraction

_TRIED = 8
"""Numbers that are looked at one by one, before points are counted: most bands are wide."""

Span = tuple[int, int]
"""From the first to the last, both included; empty where the last is the smaller."""


@dataclass(frozen=True)
class Band:
    """Bounds of numerator / denominator, both above 0."""

    least: Fraction
    """0 or more."""
    most: Fraction | None
    """Above 0 and not below `least`; None: any."""

    @property
    def inverse(self) -> "Band":
        """The same proportions, of denominator / numerator."""
        return Band(1 / self.most if self.most else Fraction(0), _inverse(self.least))

    def place(self, numerator: int, denominator: int) -> int:
        """-1 where the numerator is too small, 1 where it is too large, 0 where both fit.

        Two zeros fit, one alone doesn't: neither role serves anything without the other.
        """
        if not (numerator and denominator):
            return (numerator > denominator) - (numerator < denominator)
        if numerator < self.least * denominator:
            return -1
        return int(self.most is not None and numerator > self.most * denominator)

    def fewest(self, numerator: int) -> int:
        """The smallest denominator that the numerator isn't too large for."""
        if self.most is None:
            return 1
        return -(-numerator * self.most.denominator // self.most.numerator)

    def greatest(self, numerator: int) -> int | None:
        """The largest denominator that the numerator isn't too small for; None: any."""
        if not self.least:
            return None
        return numerator * self.least.denominator // self.least.numerator

    def fits(self, numerator: int) -> bool:
        """Whether a whole denominator is in proportion to a numerator above 0."""
        greatest = self.greatest(numerator)
        return greatest is None or self.fewest(numerator) <= greatest

    def numerators(self, among: Span, partners: Span) -> Span:
        """The span of `among` outside of which no numerator has a partner among `partners`.

        Inside it, a numerator has one exactly where it `fits`: a partner that would lie beyond an
        end of the span lets that end be one. All numbers are above 0.
        """
        low, high = self.inverse.fewest(partners[0]), self.inverse.greatest(partners[1])
        return max(among[0], low), among[1] if high is None else min(among[1], high)

    def first(self, among: Span) -> int | None:
        """The smallest number of the span that fits."""
        low, high = among
        for numerator in range(low, min(low + _TRIED, high + 1)):
            if self.fits(numerator):
                return numerator
        if high < low + _TRIED:
            return None
        before = self._points(low - 1)
        if self._points(high) == before:
            return None
        return low + bisect_left(
            range(low, high + 1), True, key=lambda numerator: self._points(numerator) > before
        )

    def last(self, among: Span) -> int | None:
        """The largest number of the span that fits."""
        low, high = among
        for numerator in range(high, max(high - _TRIED, low - 1), -1):
            if self.fits(numerator):
                return numerator
        if low > high - _TRIED:
            return None
        all_ = self._points(high)
        if self._points(low - 1) == all_:
            return None
        return low + bisect_left(
            range(low, high + 1), True, key=lambda numerator: self._points(numerator) == all_
        )

    def _points(self, numerator: int) -> int:
        """Points of the cone with a numerator from 1 to that one; both edges limit it."""
        assert self.most is not None, "with one edge alone every numerator fits"
        fewest, greatest = 1 / self.most, 1 / self.least
        below = floor_sum(
            numerator + 1, fewest.denominator, fewest.numerator, fewest.denominator - 1
        )
        upto = floor_sum(numerator + 1, greatest.denominator, greatest.numerator, 0)
        return upto - below + numerator


def floor_sum(count: int, divisor: int, factor: int, offset: int) -> int:
    """The sum of floor((factor · i + offset) / divisor) over i from 0 to count - 1.

    Euclid's algorithm on (factor, divisor): each turn swaps the axes of what is left under the line
    (Graham, Knuth, Patashnik, Concrete Mathematics, 3.5).
    """
    total = 0
    while count > 0:
        total += count * (count - 1) // 2 * (factor // divisor) + count * (offset // divisor)
        factor, offset = factor % divisor, offset % divisor
        top = factor * count + offset
        count, offset = divmod(top, divisor)
        divisor, factor = factor, divisor
        if divisor == 0:
            break
    return total


def _inverse(number: Fraction) -> Fraction | None:
    return 1 / number if number else None
