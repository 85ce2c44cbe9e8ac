"""The replicas of two roles in proportion: which pair of whole numbers serves the load.

Bounds and proportion hold exactly; a role is given replicas for the other's sake, and replicas that
it needs are not taken for it (autoscaling spec 1.4, 5.2, D13, 7.1 "P/D"). Invariant: the pair is in
proportion wherever one is that leaves both roles at their floors or above.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from inferbus_autoscaler.policy_proportion import Band, Span

Pair = tuple[int, int]
"""Replicas of the numerator and of the denominator."""


@dataclass(frozen=True, kw_only=True)
class Share:
    """What is known about one role when the pair is chosen."""

    lowest: int
    highest: int
    current: int
    """Inside the bounds."""
    wanted: int
    """What its load needs, after its own limits."""
    floor: int
    """It may not have fewer, for the other's sake either; at most `current` and `wanted`."""
    ceiling: int
    """Its rate limit allows no more now; at least `current` and `wanted`."""


class Fit(StrEnum):
    """Whether a pair is in proportion, and why not."""

    FITS = "fits"
    HELD = "held"
    """Every pair in proportion would take replicas away that are needed."""
    IMPOSSIBLE = "impossible"
    """No pair inside the bounds is in proportion."""


@dataclass(frozen=True)
class Choice:
    """The pair to have."""

    numerator: int
    denominator: int
    fit: Fit


def choose(numerator: Share, denominator: Share, band: Band) -> Choice:
    """The pair inside bounds and band that serves both roles at the least cost.

    Among the pairs within both rate limits, else among all: that which covers both needs with the
    fewest replicas; where none does, that which lacks the fewest, then the fewest replicas, then
    the least change, then the smaller numerator. Where every pair in proportion is below a floor,
    both stay, but for steps that their load asks for and that bring them nearer.
    """
    for ceilings in (
        (numerator.ceiling, denominator.ceiling),
        (numerator.highest, denominator.highest),
    ):
        spans = (numerator.floor, ceilings[0]), (denominator.floor, ceilings[1])
        pair = _best(numerator, denominator, band, *spans)
        if pair is not None:
            return Choice(*pair, Fit.FITS)
    whole = (numerator.lowest, numerator.highest), (denominator.lowest, denominator.highest)
    if _best(numerator, denominator, band, *whole) is None:
        return Choice(numerator.current, denominator.current, Fit.IMPOSSIBLE)
    return Choice(*_nearer(numerator, denominator, band), Fit.HELD)


def _best(
    numerator: Share, denominator: Share, band: Band, among: Span, partners: Span
) -> Pair | None:
    """The best pair of the two spans; None where none is in proportion."""
    wanted = (numerator.wanted, denominator.wanted)
    pairs = [(0, 0)] if among[0] == partners[0] == 0 else []
    if pairs and wanted == (0, 0):
        return (0, 0)
    among, partners = _above_zero(among), _above_zero(partners)
    covering = _cheapest(band, _from(among, wanted[0]), _from(partners, wanted[1]))
    if covering is not None:
        return covering
    pairs += _lacking(band, among, partners, wanted)

    def worth(pair: Pair) -> tuple[int, int, int, Pair]:
        lack = sum(max(want - given, 0) for want, given in zip(wanted, pair, strict=True))
        change = abs(pair[0] - numerator.current) + abs(pair[1] - denominator.current)
        return lack, sum(pair), change, pair

    return min(pairs, key=worth, default=None)


def _lacking(band: Band, among: Span, partners: Span, wanted: Pair) -> Iterator[Pair]:
    """The best pairs that lack replicas of one role, of the other, and of both.

    Within each part of the plane the lack falls with one number alone, or with the sum of both,
    and the partner that adds the least is the one nearest to it.
    """
    fewer, enough = _below(among, wanted[0]), _from(among, wanted[0])
    fewer_partners, enough_partners = _below(partners, wanted[1]), _from(partners, wanted[1])
    found = _last(band, fewer, enough_partners)
    if found is not None:
        yield found, max(enough_partners[0], band.fewest(found))
    found = _last(band.inverse, fewer_partners, enough)
    if found is not None:
        yield max(enough[0], band.inverse.fewest(found)), found
    found = _last(band, fewer, fewer_partners)
    if found is not None:
        greatest = band.greatest(found)
        most = fewer_partners[1]
        yield found, most if greatest is None else min(most, greatest)


def _cheapest(band: Band, among: Span, partners: Span) -> Pair | None:
    """The pair with the fewest replicas: a larger numerator never has a smaller fewest partner."""
    if _empty(among) or _empty(partners):
        return None
    found = band.first(band.numerators(among, partners))
    return None if found is None else (found, max(partners[0], band.fewest(found)))


def _last(band: Band, among: Span, partners: Span) -> int | None:
    if _empty(among) or _empty(partners):
        return None
    return band.last(band.numerators(among, partners))


def _nearer(numerator: Share, denominator: Share, band: Band) -> Pair:
    """The current pair, nearer to proportion where the load asks for a step that way."""
    place = band.place(numerator.current, denominator.current)
    if place > 0:
        partner, own = _nearer(denominator, numerator, band.inverse)
        return own, partner
    partner = min(denominator.current, denominator.wanted)
    enough = int(band.least * partner)
    return max(numerator.current, min(numerator.wanted, enough)), partner


def _above_zero(span: Span) -> Span:
    return max(span[0], 1), span[1]


def _from(span: Span, first: int) -> Span:
    return max(span[0], first), span[1]


def _below(span: Span, end: int) -> Span:
    return span[0], min(span[1], end - 1)


def _empty(span: Span) -> bool:
    return span[0] > span[1]
