"""When a source is asked again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferbus_contracts.errors import ErrorCode, Problem
from inferbus_model_downloader.policy_again import again_seconds
from inferbus_model_downloader.policy_retry import (
    RetryPolicy,
    asked_wait_ms,
    is_transient,
    wait_ms,
)

POLICY = RetryPolicy(attempts=5, base_ms=100, cap_ms=300, patience_ms=2_000)
NOW_MS = 784_111_770_000
"""Seven seconds before the date of the example in RFC 9110, section 5.6.7."""


def test_pauses_double_up_to_the_cap_and_then_it_is_enough() -> None:
    assert [wait_ms(POLICY, n, None, 1.0) for n in range(1, 6)] == [100, 200, 300, 300, None]


@given(st.integers(1, 10**9), st.floats(0, 1))
def test_jitter_takes_at_most_half(failures: int, fraction: float) -> None:
    pause = wait_ms(
        RetryPolicy(attempts=10**9 + 1, base_ms=100, cap_ms=300, patience_ms=0),
        failures,
        None,
        fraction,
    )
    assert pause is not None
    assert 50 <= pause <= 300


def test_a_server_that_says_how_long_is_obeyed_as_far_as_patience_goes() -> None:
    assert wait_ms(POLICY, 1, 0, 1.0) == 0
    assert wait_ms(POLICY, 1, 2_000, 0.0) == 2_000
    assert wait_ms(POLICY, 1, 2_001, 0.0) is None


def test_who_has_something_to_fall_back_on_asks_once() -> None:
    assert wait_ms(POLICY.impatient, 1, None, 0.0) is None


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, None),
        ({"retry-after": "120"}, 120_000),
        ({"retry-after": " 0 "}, 0),
        ({"retry-after": "Sun, 06 Nov 1994 08:49:37 GMT"}, 7_000),
        ({"retry-after": "Sun, 06 Nov 1994 08:00:00 GMT"}, 0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-5"}, None),
        ({"ratelimit": '"api";r=0;t=55', "retry-after": "7"}, 55_000),
        ({"ratelimit": '"api";r=12;t=55'}, None),
    ],
)
def test_what_servers_ask_for(headers: dict[str, str], expected: int | None) -> None:
    assert asked_wait_ms(headers, NOW_MS) == expected


def test_which_statuses_may_pass() -> None:
    passing = [status for status in range(100, 600) if is_transient(status)]
    assert passing == [408, 425, 429, *range(500, 600)]


def problem(code: ErrorCode) -> Problem:
    return Problem(code=code, message="")


def test_the_service_tries_again_what_passes_by_itself_more_and_more_rarely() -> None:
    busy = problem(ErrorCode.MODEL_SOURCE_UNREACHABLE)
    assert [again_seconds(busy, n, 30, 100, 4) for n in range(1, 6)] == [30, 60, 100, 100, None]


def test_the_service_does_not_repeat_what_a_person_must_change() -> None:
    for code in (ErrorCode.MODEL_NOT_FOUND, ErrorCode.MODEL_UNAUTHORIZED, ErrorCode.MODEL_CORRUPT):
        assert again_seconds(problem(code), 1, 30, 100, 4) is None
