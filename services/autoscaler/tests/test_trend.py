"""Where a rate is going, and how sure that is."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferbus_autoscaler.policy_headroom import (
    FIRST_CAUTION,
    cautious,
    headroom,
    heavy_quantile,
    surprises,
)
from inferbus_autoscaler.policy_trend import Forecast, Trend

STEP_SECONDS = 5.0
AHEAD_SECONDS = 180.0


def followed(rates: list[float]) -> Trend:
    """The trend after arrivals at these rates, one step each."""
    trend = Trend.first(rates[0], STEP_SECONDS)
    for step, rate in enumerate(rates[1:], start=1):
        trend = trend.after(rate, STEP_SECONDS, round(step * STEP_SECONDS * 1000), AHEAD_SECONDS)
    return trend


def counted(rate: float, steps: int, burst: int = 1) -> list[float]:
    """Rates as counted of a random process; requests come in groups of `burst`."""
    chance = random.Random(1)
    rates = []
    for _ in range(steps):
        groups, until = 0, 0.0
        while (until := until + chance.expovariate(rate / burst)) < STEP_SECONDS:
            groups += 1
        rates.append(groups * burst / STEP_SECONDS)
    return rates


def test_a_rising_rate_is_forecast_higher_than_it_is() -> None:
    trend = followed([20 + 0.1 * step for step in range(120)])
    now = 20 + 0.1 * 119
    assert trend.level == pytest.approx(now, rel=0.02)
    ahead = trend.forecast(AHEAD_SECONDS).rate
    assert now + 1.5 < ahead < now + 0.02 * AHEAD_SECONDS + 0.5


def test_a_steady_rate_is_forecast_to_stay() -> None:
    trend = followed(counted(20.0, 2_000))
    assert trend.level == pytest.approx(20.0, rel=0.15)
    assert trend.forecast(AHEAD_SECONDS).rate == pytest.approx(20.0, rel=0.25)


@pytest.mark.parametrize(("burst", "expected"), [(1, 1.0), (5, 5.0)])
def test_the_scatter_of_arrivals_is_measured(burst: int, expected: float) -> None:
    assert followed(counted(20.0, 2_000, burst)).dispersion == pytest.approx(expected, rel=0.4)


def test_a_rate_that_wanders_is_trusted_less_than_one_that_stays() -> None:
    chance = random.Random(2)
    wandering, rate = [], 20.0
    for _ in range(3_000):
        rate *= math.exp(chance.gauss(0, 0.02))
        wandering.append(rate)
    calm, wild = followed([20.0] * 3_000), followed(wandering)
    assert wild.volatility > 4 * calm.volatility
    relative = [trend.forecast(60).variance / trend.level**2 for trend in (calm, wild)]
    assert relative[1] > 4 * relative[0]


def test_uncertainty_grows_with_the_way_ahead() -> None:
    trend = followed(counted(20.0, 500))
    variances = [trend.forecast(seconds).variance for seconds in (10, 60, 180, 420)]
    assert variances == sorted(variances)


@given(
    st.lists(st.tuples(st.floats(0, 1e6), st.floats(5, 600), st.integers(0, 600_000)), max_size=60)
)
def test_nothing_that_arrives_makes_it_lose_its_mind(story: list[tuple[float, float, int]]) -> None:
    trend, now_ms = Trend.first(1.0, STEP_SECONDS), 0
    for rate, seconds, passed_ms in story:
        now_ms += passed_ms
        trend = trend.after(rate, seconds, now_ms, AHEAD_SECONDS)
        forecast = trend.forecast(AHEAD_SECONDS)
        numbers = (trend.level, trend.dispersion, trend.volatility, *vars(forecast).values())
        assert all(math.isfinite(number) and number >= 0 for number in numbers)
        assert len(trend.issued) <= 16


@pytest.mark.parametrize(
    ("share", "quantile"), [(0.025, 3.1824), (0.005, 5.8409), (0.001, 10.2145), (0.0005, 12.9240)]
)
def test_quantiles_are_those_of_the_tables(share: float, quantile: float) -> None:
    """Student's t with 3 degrees of freedom, one-sided."""
    assert heavy_quantile(share) == pytest.approx(quantile, rel=1e-4)


def needed(**changes: float) -> float:
    given = {
        "late_share": 0.005,
        "limit_seconds": 2.0,
        "startup_seconds": 180.0,
        "caution": FIRST_CAUTION,
    } | changes
    return headroom(Forecast(rate=20.0, variance=4.0), 1.5, **given)


def test_stricter_objectives_and_longer_start_ups_need_more_headroom() -> None:
    assert needed(late_share=0.001) > needed() > needed(late_share=0.05)
    assert needed(limit_seconds=1.0) > needed() > needed(limit_seconds=10.0)
    assert needed(caution=2.0) == pytest.approx(2 * needed())
    assert surprises(0.005, 420) > surprises(0.005, 60)


def test_caution_grows_with_what_is_late_and_fades_while_nothing_is() -> None:
    late = cautious(1.0, 0.005, seconds=60.0, late_seconds=60.0)
    assert late > 1.0 > cautious(1.0, 0.005, seconds=86_400.0, late_seconds=0.0)
    assert cautious(1.0, 0.001, 60.0, 60.0) > late
    assert cautious(0.0, 0.005, 1e9, 0.0) == 0.0
