import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferbus_shared.kube.pacing import (
    LONGEST_DELAY_SECONDS,
    Pace,
    back_off_seconds,
    retry_after_seconds,
    spread,
)

CHANCES = st.floats(min_value=0, max_value=1, exclude_max=True)


@given(st.integers(min_value=1, max_value=10_000), CHANCES)
def test_a_delay_is_never_nothing_and_never_more_than_the_longest(
    failures: int, chance: float
) -> None:
    assert 0.25 <= back_off_seconds(failures, chance) <= LONGEST_DELAY_SECONDS


@given(st.integers(min_value=1, max_value=5), CHANCES, CHANCES)
def test_each_failure_waits_at_least_as_long_as_the_one_before(
    failures: int, before: float, after: float
) -> None:
    assert back_off_seconds(failures + 1, after) >= back_off_seconds(failures, before)


def test_chance_spreads_the_delays_over_the_upper_half() -> None:
    assert back_off_seconds(3, 0.0) == 1.0
    assert back_off_seconds(3, 0.5) == 1.5


@given(st.floats(min_value=0.1, max_value=1e4), CHANCES)
def test_spreading_adds_up_to_a_tenth(seconds: float, chance: float) -> None:
    assert seconds <= spread(seconds, chance) <= seconds * 1.1001


@pytest.mark.parametrize(
    ("header", "seconds"),
    [("1", 1.0), (" 7 ", 7.0), ("0", 0.0), ("86400", 60.0)],
)
def test_retry_after_is_read_in_seconds(header: str, seconds: float) -> None:
    assert retry_after_seconds(header) == seconds


@pytest.mark.parametrize("header", [None, "", "soon", "-1", "1.5", "Fri, 20 Nov 2026 20:00:00 GMT"])
def test_a_retry_after_that_isnt_seconds_says_nothing(header: str | None) -> None:
    assert retry_after_seconds(header) is None


def test_no_limit_makes_nobody_wait() -> None:
    pace = Pace(0.0)
    assert [pace.delay_seconds(1.0) for _ in range(1000)] == [0.0] * 1000


def test_a_seconds_worth_begins_at_once_and_the_rest_at_the_rate() -> None:
    pace = Pace(10.0)
    delays = [round(pace.delay_seconds(100.0), 6) for _ in range(13)]
    assert delays == [0.0] * 10 + [0.1, 0.2, 0.3]


@given(st.floats(min_value=0.2, max_value=500), st.lists(st.floats(0, 2), max_size=60))
def test_no_second_sees_more_than_two_seconds_worth(rate: float, gaps: list[float]) -> None:
    pace = Pace(rate)
    now, begun = 10.0, []
    for gap in gaps:
        now += gap
        begun.append(now + pace.delay_seconds(now))
    for start in begun:
        assert sum(start <= one < start + 1 for one in begun) <= 2 * rate + 2
