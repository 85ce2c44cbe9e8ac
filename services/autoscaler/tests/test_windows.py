"""Upstream's windows: the table of autoscaling spec 6.5 by number, and brute force."""

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferbus_autoscaler.policy_windows import (
    Best,
    RateWindow,
    RecommendationWindow,
    SnapshotWindow,
)
from inferbus_autoscaler.stamps import pack, shortened, unpack

S = 1000
Times = Iterable[tuple[int, int]]


def rates(best: Best, appends: Times) -> RateWindow:
    window = RateWindow(best, 10 * S)
    for value, at_s in appends:
        window = window.appended(value, at_s * S)
    return window


def test_as_t113_largest_rate() -> None:
    window = rates(Best.MAX, [(6, 1), (3, 3), (5, 5), (2, 7)])
    seconds = [7, 12, 13, 14, 17, 18, 26, 27, 28]
    assert [window.extreme(0, s * S) for s in seconds] == [6, 6, 6, 5, 5, 2, 2, 2, 0]
    assert window.extreme(3, 18 * S) == 3


def test_as_t114_smallest_rate() -> None:
    window = rates(Best.MIN, [(6, 1), (3, 3), (9, 5), (4, 7)])
    assert [window.extreme(10, s * S) for s in (7, 14, 15, 16, 26, 28)] == [3, 3, 3, 4, 4, 10]
    assert window.extreme(2, 18 * S) == 2


def test_as_t115_largest_recommendation() -> None:
    window = RecommendationWindow(Best.MAX, 10 * S)
    for value, at_s in [(6, 1), (3, 3), (5, 5), (2, 7)]:
        window = window.appended(value, at_s * S)
    assert [window.extreme(s * S) for s in (7, 12, 14, 16, 18)] == [6, 5, 5, 2, None]


def test_as_t116_snapshots() -> None:
    window: SnapshotWindow[str] = SnapshotWindow(10 * S, 15 * S)
    for name, at_s in [("foo", 1), ("bar", 3), ("quz", 5), ("abc", 7)]:
        window = window.appended(name, at_s * S)
    expected = [None, "foo", "bar", "quz", "abc", "abc", None]
    assert [window.baseline(s * S) for s in (7, 12, 14, 16, 18, 21, 23)] == expected


@pytest.mark.parametrize(("step_ms", "first_loop"), [(15_000, 5), (15_020, 4)])
def test_as_t117_the_first_baseline_is_strictly_older_than_a_minute(
    step_ms: int, first_loop: int
) -> None:
    window: SnapshotWindow[int] = SnapshotWindow(60 * S, 300 * S)
    baselines = []
    for loop in range(7):
        baselines.append(window.baseline(loop * step_ms))
        window = window.appended(loop, loop * step_ms)
    assert next(loop for loop, found in enumerate(baselines) if found is not None) == first_loop
    assert baselines[first_loop] == 0


def test_a_window_of_no_length_knows_nothing() -> None:
    assert RecommendationWindow(Best.MAX, 0).appended(5, S).extreme(S) is None
    assert RateWindow(Best.MAX, 0).appended(5, S).extreme(7, S) is None


steps = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 9)), min_size=1, max_size=30)
"""(seconds since the step before, value)."""


@given(steps=steps, length_s=st.integers(1, 60), best=st.sampled_from(Best))
def test_recommendations_by_brute_force(
    steps: list[tuple[int, int]], length_s: int, best: Best
) -> None:
    window = RecommendationWindow(best, length_s)
    now = 0
    history: list[tuple[int, int]] = []
    for gap, value in steps:
        now += gap
        alive = [v for at, v in history if at + length_s >= now]
        assert window.extreme(now) == (best.of(*alive) if alive else None)
        window = window.appended(value, now)
        history.append((now, value))


@given(steps=steps, length_s=st.integers(1, 60), best=st.sampled_from(Best))
def test_rates_by_brute_force(steps: list[tuple[int, int]], length_s: int, best: Best) -> None:
    """The value in force counts for two lengths, a superseded one for one after its end."""
    window = RateWindow(best, length_s)
    now, last = 0, None
    superseded: list[tuple[int, int]] = []
    for gap, value in steps:
        now += gap
        if last is not None and last[0] + 2 * length_s < now:
            last = None
        alive = [v for at, v in superseded if at + length_s >= now]
        known = [value, *alive, *([] if last is None else [last[1]])]
        assert window.extreme(value, now) == best.of(*known)
        window = window.appended(value, now)
        if last is not None:
            superseded.append((now, last[1]))
        last = (now, value)


stamps = st.lists(st.tuples(st.integers(0, 10**7), st.integers(0, 10**6)), max_size=40).map(
    lambda pairs: tuple(sorted(pairs))
)


@given(stamps)
def test_packing_loses_nothing(given: tuple[tuple[int, int], ...]) -> None:
    assert unpack(pack(given)) == given


@given(stamps, st.integers(1, 10))
def test_shortening_keeps_the_extremes_at_least_as_long(
    given: tuple[tuple[int, int], ...], most: int
) -> None:
    """Values that fall from front to back: whatever counted at some time still does."""
    falling = tuple((at, 10**6 - index) for index, (at, _) in enumerate(given))
    short = shortened(falling, most)
    assert len(short) == min(len(falling), most)
    for at, value in falling:
        assert any(later >= at and kept >= value for later, kept in short)
