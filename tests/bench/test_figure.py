"""Verdicts and quantiles."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.bench.builders import figure, outcome
from tests.bench.figure import Outcome, outcomes, quantile


@pytest.mark.parametrize(("value", "holds"), [(9.99, True), (10.0, True), (10.01, False)])
def test_a_limit_may_be_reached_and_not_passed(value: float, holds: bool) -> None:
    assert figure(value).holds is holds


@pytest.mark.parametrize(("value", "holds"), [(9.99, False), (10.0, True), (10.01, True)])
def test_a_rate_may_not_stay_below_its_limit(value: float, holds: bool) -> None:
    assert figure(value, more_is_better=True).holds is holds


def test_the_best_rate_is_the_highest() -> None:
    tried = Outcome(attempts=[figure(value, more_is_better=True) for value in (8, 12, 9)])
    assert tried.figure.value == 12
    assert tried.holds


def test_what_has_no_limit_always_holds() -> None:
    assert figure(1e9, limit=None).holds


def test_the_best_attempt_counts_where_something_is_promised() -> None:
    assert outcome(30, 8, 12).figure.value == 8
    assert outcome(30, 8, 12).holds
    assert not outcome(30, 11, 12).holds


def test_the_last_attempt_counts_where_nothing_is_promised() -> None:
    assert outcome(30, 8, 12, limit=None).figure.value == 12


def test_attempts_are_put_together_by_name_in_the_order_of_the_first() -> None:
    first = [figure(1, name="b"), figure(2, name="a")]
    second = [figure(3, name="a"), figure(4, name="b")]
    found = outcomes([first, second])
    assert [[one.value for one in outcome.attempts] for outcome in found] == [[1, 4], [2, 3]]


@pytest.mark.parametrize(
    ("share", "expected"), [(0, 1), (0.01, 1), (0.5, 50), (0.99, 99), (0.991, 100), (1, 100)]
)
def test_a_quantile_is_the_value_of_its_rank(share: float, expected: int) -> None:
    assert quantile(range(100, 0, -1), share) == expected


def test_there_is_no_quantile_of_nothing() -> None:
    with pytest.raises(ValueError, match="no value"):
        quantile([], 0.5)


@given(
    st.lists(st.integers(-1000, 1000), min_size=1, max_size=50),
    st.integers(0, 1000).map(lambda thousandths: thousandths / 1000),
)
def test_a_quantile_is_the_smallest_that_its_share_does_not_exceed(
    values: list[int], share: float
) -> None:
    found = quantile(values, share)
    at_most = sum(value <= found for value in values)
    below = sum(value < found for value in values)
    assert found in values
    assert at_most >= share * len(values) - 1e-6
    assert below < share * len(values) + 1e-6 or below == 0
