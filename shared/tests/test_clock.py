"""Virtual time, and the time that nobody can set."""

import time

import pytest

from inferbus_shared.clock import Anchor, SystemClock

HOUR_NS = 3_600 * 10**9


@pytest.mark.parametrize("jump_ns", [HOUR_NS, -HOUR_NS])
def test_a_clock_that_is_set_moves_virtual_time_and_not_the_steady_one(
    monkeypatch: pytest.MonkeyPatch, jump_ns: int
) -> None:
    clock = SystemClock(Anchor(real_ms=0, virtual_ms=0, rate=2.0))
    now_ms, steady_ms = clock.now_ms(), clock.steady_ms()
    real = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: real() + jump_ns)
    assert abs(clock.now_ms() - now_ms) >= 1.9 * HOUR_NS / 10**6
    assert 0 <= clock.steady_ms() - steady_ms < HOUR_NS / 10**6


def test_both_times_run_at_the_same_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SystemClock(Anchor(real_ms=0, virtual_ms=0, rate=30.0))
    for name in ("time_ns", "monotonic_ns"):
        monkeypatch.setattr(time, name, lambda: 7 * 10**9)
    assert (clock.now_ms(), clock.steady_ms()) == (210_000, 210_000)
