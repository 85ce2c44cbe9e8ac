"""The choice of a pair, against a search through all pairs."""

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inferbus_autoscaler.policy_joint import Choice, Fit, Pair, Share, choose
from inferbus_autoscaler.policy_proportion import Band, floor_sum

MANY = 1_000_000


def share(wanted: int, **given: Any) -> Share:
    """A role at what it wants, which may have 0 to 100 replicas, unless told otherwise."""
    low, high = given.pop("bounds", (0, 100))
    current = min(max(given.pop("current", wanted), low), high)
    values: dict[str, Any] = {
        "lowest": low,
        "highest": high,
        "current": current,
        "wanted": wanted,
        "floor": low,
        "ceiling": high,
    }
    return Share(**(values | given))


def band(least: str, most: str) -> Band:
    return Band(Fraction(least), Fraction(most))


def all_pairs(one: Share, other: Share, the_band: Band, *, most: str) -> Iterator[Pair]:
    """Every pair between the floors and `most` of both that is in proportion."""
    for n in range(one.floor, getattr(one, most) + 1):
        for d in range(other.floor, getattr(other, most) + 1):
            if (n == d == 0) or (n and d and the_band.least * d <= n <= (the_band.most or n) * d):
                yield n, d


def searched(one: Share, other: Share, the_band: Band) -> Pair | None:
    """The rule as it is told: tier by tier, the best by loss, total, change, order."""

    def worth(pair: Pair) -> tuple[int, int, int, Pair]:
        n, d = pair
        return (
            max(one.wanted - n, 0) + max(other.wanted - d, 0),
            n + d,
            abs(n - one.current) + abs(d - other.current),
            pair,
        )

    for most in ("ceiling", "highest"):
        pairs = list(all_pairs(one, other, the_band, most=most))
        if pairs:
            return min(pairs, key=worth)
    return None


@st.composite
def shares(draw: st.DrawFn) -> Share:
    """Any role that the limits before may hand on."""
    low = draw(st.integers(0, 4))
    high = low + draw(st.integers(0, 12))
    current, wanted = (draw(st.integers(low, high)) for _ in range(2))
    return Share(
        lowest=low,
        highest=high,
        current=current,
        wanted=wanted,
        floor=draw(st.integers(low, min(current, wanted))),
        ceiling=draw(st.integers(max(current, wanted), high)),
    )


ratios = st.fractions(0, 4, max_denominator=20)


@st.composite
def bands(draw: st.DrawFn) -> Band:
    least, most = sorted((draw(ratios), draw(ratios)))
    return Band(least, most or None)


@settings(max_examples=1500)
@given(shares(), shares(), bands())
def test_the_pair_is_the_one_that_a_search_through_all_pairs_finds(
    one: Share, other: Share, the_band: Band
) -> None:
    found, expected = choose(one, other, the_band), searched(one, other, the_band)
    if expected is None:
        assert found.fit is not Fit.FITS
    else:
        assert found == Choice(*expected, Fit.FITS)


@settings(max_examples=500)
@given(shares(), shares(), bands())
def test_a_pair_that_cannot_fit_takes_nothing_and_comes_no_further_from_it(
    one: Share, other: Share, the_band: Band
) -> None:
    found = choose(one, other, the_band)
    whole = (replace(role, floor=role.lowest) for role in (one, other))
    possible = any(True for _ in all_pairs(*whole, the_band, most="highest"))
    if found.fit is Fit.FITS:
        return
    assert found.fit is (Fit.HELD if possible else Fit.IMPOSSIBLE)
    for role, number in ((one, found.numerator), (other, found.denominator)):
        assert role.floor <= number <= role.highest
        assert number in (role.current, role.wanted) or number < role.wanted
    if not possible:
        assert (found.numerator, found.denominator) == (one.current, other.current)


@settings(max_examples=500)
@given(shares(), shares(), bands())
def test_the_two_roles_may_change_places(one: Share, other: Share, the_band: Band) -> None:
    """Only where two pairs are as good does it matter which one is the numerator."""
    found, turned = choose(one, other, the_band), choose(other, one, the_band.inverse)
    assert found.fit is turned.fit
    assert found.numerator + found.denominator == turned.numerator + turned.denominator


@given(
    st.integers(0, 50),
    st.integers(1, 30),
    st.integers(0, 60),
    st.integers(0, 40),
)
def test_a_sum_of_floors(count: int, divisor: int, factor: int, offset: int) -> None:
    expected = sum((factor * index + offset) // divisor for index in range(count))
    assert floor_sum(count, divisor, factor, offset) == expected


@given(bands(), st.integers(1, 60), st.integers(0, 60))
def test_the_first_and_the_last_number_with_a_partner(
    the_band: Band, low: int, length: int
) -> None:
    span = (low, low + length)
    fitting = [number for number in range(low, low + length + 1) if the_band.fits(number)]
    assert the_band.first(span) == (fitting[0] if fitting else None)
    assert the_band.last(span) == (fitting[-1] if fitting else None)


@pytest.mark.parametrize(
    ("least", "most", "first"),
    [
        ("1", "1", 2),
        ("0.333333", "0.333334", 2),
        ("1000001/1000000", "1000001/1000000", 1_000_001),
        ("999999/1000000", "999999/1000000", 999_999),
        ("618033/1000000", "618034/1000000", 2),
    ],
)
def test_narrow_bands_over_a_million_replicas(least: str, most: str, first: int) -> None:
    """A search through all of them would take minutes; the answer is the first that fits."""
    narrow = band(least, most)
    found = choose(share(2, bounds=(0, 2 * MANY)), share(1, bounds=(0, 2 * MANY)), narrow)
    assert found.fit is Fit.FITS
    assert narrow.place(found.numerator, found.denominator) == 0
    assert narrow.first((2, 2 * MANY)) == found.numerator
    assert found.numerator >= first
    assert not any(narrow.fits(n) for n in range(2, min(found.numerator, 5000)))


def test_both_go_to_zero_together_or_not_at_all() -> None:
    any_ratio = band("0.25", "1")
    idle, busy = share(0, current=2), share(1, current=4)
    assert choose(idle, share(0, current=2), any_ratio) == Choice(0, 0, Fit.FITS)
    assert choose(idle, busy, any_ratio) == Choice(1, 1, Fit.FITS)
    stays = share(1, current=2, bounds=(1, 100))
    assert choose(idle, stays, any_ratio) == Choice(1, 1, Fit.FITS)


def test_a_numerator_may_not_be_gone_though_the_ratio_has_no_least() -> None:
    assert choose(share(0), share(6), band("0", "1")) == Choice(1, 6, Fit.FITS)


def test_a_rate_limit_of_one_role_slows_the_other_down() -> None:
    """Both go on at the pace of the slower one, and never out of proportion."""
    eager = share(8, current=4, floor=4, ceiling=8)
    slow = share(8, current=8, floor=8, ceiling=12)
    assert choose(eager, slow, band("0.5", "0.5")) == Choice(6, 12, Fit.FITS)


def test_a_rate_limit_is_overstepped_only_where_no_pair_within_it_is_in_proportion() -> None:
    behind = share(1, current=1, floor=1, ceiling=2)
    ahead = share(10, current=10, floor=10, ceiling=14)
    assert choose(behind, ahead, band("0.5", "1")) == Choice(5, 10, Fit.FITS)


def test_replicas_that_are_needed_are_not_taken_for_the_proportion() -> None:
    """Three can carry twelve; twenty are needed, and stand. What can be done, is."""
    few, many = share(3, current=2, bounds=(0, 3)), share(20, current=20, floor=20)
    assert choose(few, many, band("0.25", "1")) == Choice(3, 20, Fit.HELD)
    fewer_needed = share(16, current=20, floor=16)
    assert choose(few, fewer_needed, band("0.25", "1")) == Choice(3, 16, Fit.HELD)
    carried = share(12, current=20, floor=12)
    assert choose(few, carried, band("0.25", "1")) == Choice(3, 12, Fit.FITS)
