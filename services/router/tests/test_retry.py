"""When a request is sent again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferbus_router.policy_retry import Failure, RetryBudget, retry_delay_ms


@pytest.mark.parametrize("failure", [Failure.CONNECT, Failure.STALE])
def test_a_request_that_was_never_sent_has_one_more_try_at_once(failure: Failure) -> None:
    assert retry_delay_ms(failure, 0, 0, 100, 0.5) == 0
    assert retry_delay_ms(failure, 1, 0, 100, 0.5) is None


@pytest.mark.parametrize("failure", [Failure.BROKEN, Failure.STATUS])
def test_rt_02_other_failures_are_retried_as_often_as_declared(failure: Failure) -> None:
    assert retry_delay_ms(failure, 0, 0, 100, 0.5) is None
    assert [retry_delay_ms(failure, made, 3, 100, 0.5) for made in range(4)] == [
        100,
        100,
        100,
        None,
    ]


def test_connect_failures_count_against_what_is_declared() -> None:
    assert retry_delay_ms(Failure.CONNECT, 4, 5, 100, 0.0) == 0
    assert retry_delay_ms(Failure.CONNECT, 5, 5, 100, 0.0) is None


def test_rt_03_there_is_no_time_left_after_a_timeout() -> None:
    assert retry_delay_ms(Failure.TIMEOUT, 0, 5, 100, 0.5) is None


@given(st.integers(0, 60_000), st.floats(0, 1, exclude_max=True))
def test_the_wait_is_spread_around_the_interval(interval_ms: int, jitter: float) -> None:
    delay_ms = retry_delay_ms(Failure.STATUS, 0, 1, interval_ms, jitter)

    assert delay_ms is not None
    assert interval_ms // 2 <= delay_ms <= interval_ms * 3 // 2 + 1


@given(st.lists(st.booleans(), max_size=600))
def test_retries_stay_a_fifth_of_the_requests(is_retry: list[bool]) -> None:
    budget = RetryBudget()
    requests = retries = 0
    for wants_retry in is_retry:
        if wants_retry:
            retries += budget.spend(requests)
        else:
            requests += 1
        assert retries <= RetryBudget.MOST / 5 + requests / 5


def test_a_budget_that_was_used_up_comes_back_with_requests() -> None:
    budget = RetryBudget()
    while budget.spend(1000):
        pass

    assert not budget.spend(1004)
    assert budget.spend(1005)
    assert not budget.spend(1005)


def test_quiet_times_do_not_save_up_for_a_storm() -> None:
    budget = RetryBudget()
    budget.spend(0)
    storm = [budget.spend(1_000_000) for _ in range(100)]

    assert sum(storm) == RetryBudget.MOST / 5
