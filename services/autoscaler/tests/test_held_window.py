"""Windows of held values: brute force, and independence of when samples arrive."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferbus_autoscaler.policy_held_window import LONGEST_MS, HeldWindow
from inferbus_autoscaler.policy_windows import Best

changes = st.lists(st.tuples(st.integers(1, 40), st.integers(0, 9)), min_size=1, max_size=30)
"""(ms since the change before, value)."""


def window_of(given_changes: list[tuple[int, int]], best: Best) -> tuple[HeldWindow, int]:
    window, now = HeldWindow(), 0
    for gap, value in given_changes:
        now += gap
        window = window.held(value, now, best)
    return window, now


def by_brute_force(given_changes: list[tuple[int, int]], length: int, now: int, best: Best) -> int:
    """The extreme over every half millisecond after now - length, up to now."""
    at, times = 0, []
    for gap, value in given_changes:
        at += gap
        times.append((at, value))
    values = []
    for half in range(2 * (now - length) + 1, 2 * now + 1):
        started = [value for start, value in times if 2 * start <= half]
        if started:
            values.append(started[-1])
    return best.of(*values)


@given(changes, st.integers(1, 100), st.integers(0, 100), st.sampled_from(Best))
def test_the_extreme_is_that_of_every_instant(
    given_changes: list[tuple[int, int]], length: int, later: int, best: Best
) -> None:
    window, now = window_of(given_changes, best)
    expected = by_brute_force(given_changes, length, now + later, best)
    assert window.extreme(length, now + later, best) == expected


@given(changes, st.integers(1, 100), st.sampled_from(Best))
def test_it_changes_at_the_expiries_and_at_no_other_time(
    given_changes: list[tuple[int, int]], length: int, best: Best
) -> None:
    window, now = window_of(given_changes, best)
    expiries = window.expiries(length, now, best)
    assert expiries == sorted(expiries)
    for instant in range(now + 1, now + length + 2):
        before = window.extreme(length, instant - 1, best)
        changed = window.extreme(length, instant, best) != before
        assert changed == (instant in expiries)


@given(changes, st.sampled_from(Best))
def test_the_same_value_again_is_the_same_window(
    given_changes: list[tuple[int, int]], best: Best
) -> None:
    window, now = window_of(given_changes, best)
    assert window.held(given_changes[-1][1], now + 7, best) is window


@given(changes, st.integers(1, 100), st.sampled_from(Best), st.integers(1, 5))
def test_a_shortened_window_errs_on_the_careful_side(
    given_changes: list[tuple[int, int]], length: int, best: Best, most: int
) -> None:
    window, now = window_of(given_changes, best)
    short = window.shortened(most)
    assert len(short.past) <= most
    for instant in range(now, now + length + 1):
        full, cut = (w.extreme(length, instant, best) for w in (window, short))
        assert full is not None
        assert cut is not None
        assert cut == best.of(full, cut)


@pytest.mark.parametrize("best", Best)
def test_a_value_counts_until_the_very_end_of_the_window(best: Best) -> None:
    old, new = (10, 2) if best is Best.MAX else (2, 10)
    window = HeldWindow().held(old, 0, best).held(new, 45, best)
    assert window.extreme(60, 104, best) == old
    assert window.extreme(60, 105, best) == new


def test_without_a_length_only_the_value_in_force_counts() -> None:
    window = HeldWindow().held(10, 0, Best.MAX).held(2, 45, Best.MAX)
    assert window.extreme(0, 45, Best.MAX) == 2


def test_what_no_window_can_reach_is_dropped() -> None:
    window = HeldWindow().held(10, 0, Best.MAX).held(5, 1, Best.MAX)
    assert window.held(2, LONGEST_MS, Best.MAX).past == ((1, 10), (LONGEST_MS, 5))
    assert window.held(2, LONGEST_MS + 1, Best.MAX).past == ((LONGEST_MS + 1, 5),)


def test_an_empty_window_knows_nothing() -> None:
    assert HeldWindow().extreme(60, 0, Best.MAX) is None
    assert HeldWindow().expiries(60, 0, Best.MAX) == []
