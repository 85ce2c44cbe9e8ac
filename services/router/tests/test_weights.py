"""Weighted targets: exact shares, in a fixed order, among those that can serve."""

from collections import Counter
from fractions import Fraction
from math import gcd

from hypothesis import given
from hypothesis import strategies as st

from inferbus_router.policy_weights import SmoothWeights

WEIGHTS = st.lists(st.integers(0, 100), min_size=1, max_size=16).filter(any)


def draws(weights: SmoothWeights, count: int, eligible: list[bool]) -> list[int | None]:
    return [weights.draw(eligible) for _ in range(count)]


@given(WEIGHTS, st.integers(1, 3))
def test_over_a_cycle_every_target_gets_exactly_its_share(weights: list[int], cycles: int) -> None:
    length = sum(weights) // gcd(*weights)
    drawn = Counter(draws(SmoothWeights(weights), length * cycles, [True] * len(weights)))

    for index, weight in enumerate(weights):
        assert drawn[index] == Fraction(weight * length * cycles, sum(weights))


@given(WEIGHTS, st.data())
def test_rt_24_the_share_of_targets_that_cannot_serve_goes_to_the_others(
    weights: list[int], data: st.DataObject
) -> None:
    eligible = data.draw(st.lists(st.booleans(), min_size=len(weights), max_size=len(weights)))
    left = [weight for weight, can in zip(weights, eligible, strict=True) if can and weight]
    cycle = SmoothWeights(weights)
    if not left:
        assert cycle.draw(eligible) is None
        return
    length = sum(left) // gcd(*left)
    drawn = Counter(draws(cycle, length, eligible))

    for index, weight in enumerate(weights):
        expected = Fraction(weight * length, sum(left)) if eligible[index] else 0
        assert drawn[index] == expected


def test_rt_d23_targets_alternate_instead_of_coming_in_runs() -> None:
    assert draws(SmoothWeights([5, 1, 1]), 7, [True] * 3) == [0, 0, 1, 0, 2, 0, 0]


def test_t024_t025_t026_shares_are_relative() -> None:
    for weights, expected in (([70, 30], [7, 3]), ([50, 30], [5, 3]), ([0, 100], [0, 1])):
        drawn = Counter(draws(SmoothWeights(weights), sum(expected), [True, True]))
        assert [drawn[0], drawn[1]] == expected


def test_a_target_that_comes_back_does_not_catch_up_on_what_it_missed() -> None:
    cycle = SmoothWeights([1, 1])
    draws(cycle, 10, [True, False])

    assert Counter(draws(cycle, 10, [True, True])) == {0: 5, 1: 5}
