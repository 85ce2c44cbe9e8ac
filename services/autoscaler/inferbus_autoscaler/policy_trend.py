"""Where a rate is going: level and slope of noisy arrivals, and how wrong forecasts turn out.

A Kalman filter of a local linear trend (Durbin & Koopman, Time Series Analysis by State Space
Methods, 3.2) over the rate of arrivals, relative to its level so that it knows no scale. Both of
its noises are measured: the scatter of arrivals by their successive differences (von Neumann 1941),
and the wandering of the slope by what forecasts were off when their time came. A level that jumps
is followed at once. Invariant: rates and variances are finite and not negative, whatever arrives.
"""

import math
from dataclasses import dataclass, replace

_WANDER = 3e-5
"""Of the slope: its change per square root of a second, as a share of the level, to begin with."""
_DAMPING_SECONDS = 400.0
"""A slope is trusted for about so long (damped trend, Gardner & McKenzie 1985)."""
_FIRST_DISPERSION = 1.5
_MOST_SCATTER = 15.0
"""One step's arrivals count as scattered at most so many times as much as all before."""
_DISPERSION_SECONDS = 1_000.0
_SMOOTHING_SECONDS = 60.0
"""What a forecast is compared with is a mean over about so long."""
_MEMORY_SECONDS = 4 * 3600.0
"""How long a forecast's error counts."""
_MOST_SQUARED_ERROR = 25.0
_FIRST_SLOPE_SHARE = 1e-3
_LEAST_VOLATILITY, _MOST_VOLATILITY = 0.1, 10.0
MOST_FORECASTS = 16
"""How many forecasts wait for their time at once."""
_LONGEST_STEP_SECONDS = 60.0
_JUMP = 4.0
"""Two errors in a row of so many standard deviations, to the same side, are no chance."""
_LEAST_RATE = 0.02
"""Per second; a rate is never known better than that."""


@dataclass(frozen=True, kw_only=True)
class Issued:
    """A forecast that waits for its time."""

    due_ms: int
    rate: float
    deviation: float
    """Standard deviation it was given, per second."""


@dataclass(frozen=True, kw_only=True)
class Forecast:
    """The rate at a time to come."""

    rate: float
    """Per second."""
    variance: float
    """Of the rate's own course, without the scatter of single arrivals."""


@dataclass(frozen=True, kw_only=True)
class Trend:
    """What is known of a rate; units are per second, and per second squared for slopes."""

    level: float
    slope: float = 0.0
    level_variance: float
    covariance: float = 0.0
    slope_variance: float
    dispersion: float = _FIRST_DISPERSION
    """Variance-to-mean ratio of arrivals."""
    volatility: float = 1.0
    """Mean squared error of forecasts over what they were given; 1: as they said."""
    smoothed: float
    rate: float
    """Of the last step alone."""
    surprise: float = 0.0
    """Its error, in standard deviations of what was expected."""
    issued: tuple[Issued, ...] = ()
    """Oldest first."""

    @classmethod
    def first(cls, rate: float, seconds: float) -> "Trend":
        """After the first `seconds` of arrivals."""
        return cls(
            level=rate,
            level_variance=_FIRST_DISPERSION * max(rate, _LEAST_RATE) / seconds,
            slope_variance=(_FIRST_SLOPE_SHARE * rate) ** 2,
            smoothed=rate,
            rate=rate,
        )

    def again(self, rate: float, seconds: float) -> "Trend":
        """After the first `seconds` of arrivals that follow none: only what was learned stays."""
        new = Trend.first(rate, seconds)
        return replace(new, dispersion=self.dispersion, volatility=self.volatility)

    def after(self, rate: float, seconds: float, now_ms: int, ahead_seconds: float) -> "Trend":
        """The trend `seconds` later, in which arrivals came at `rate` on average.

        `ahead_seconds` is how far the next forecasts look.
        """
        seconds = min(seconds, _LONGEST_STEP_SECONDS)
        moved = self._moved(rate, seconds)
        return moved._judged(now_ms)._issuing(now_ms, ahead_seconds)

    def forecast(self, seconds: float) -> Forecast:
        """The rate in `seconds`, as far as the trend goes on."""
        reach = _DAMPING_SECONDS * -math.expm1(-seconds / _DAMPING_SECONDS)
        course = self.level_variance + 2 * reach * self.covariance
        course += reach * reach * self.slope_variance + self._wander(seconds) * seconds**2 / 3
        return Forecast(
            rate=max(self.level + self.slope * reach, 0.0),
            variance=max(course, 0.0) * self.volatility,
        )

    @property
    def _scale(self) -> float:
        return max(self.level, _LEAST_RATE)

    def _wander(self, seconds: float) -> float:
        """Variance that the slope gains in so many seconds."""
        volatility = min(max(self.volatility, _LEAST_VOLATILITY), _MOST_VOLATILITY)
        return _WANDER**2 * volatility * self.level**2 * seconds

    def _moved(self, rate: float, seconds: float) -> "Trend":
        """One step of the filter: what was expected, corrected by what came."""
        crossed = self.covariance + seconds * self.slope_variance
        level = self.level + self.slope * seconds
        level_variance = self.level_variance + seconds * (self.covariance + crossed)
        slope_variance = self.slope_variance + self._wander(seconds)
        error = rate - level
        expected = level_variance + self.dispersion * max(level, _LEAST_RATE) / seconds
        surprise = error / math.sqrt(expected)
        if min(surprise, self.surprise) > _JUMP or max(surprise, self.surprise) < -_JUMP:
            level_variance, expected = level_variance + error**2, expected + error**2
        level_gain, slope_gain = level_variance / expected, crossed / expected
        return Trend(
            level=max(level + level_gain * error, 0.0),
            slope=self.slope + slope_gain * error,
            level_variance=level_variance * (1 - level_gain),
            covariance=crossed * (1 - level_gain),
            slope_variance=max(slope_variance - slope_gain * crossed, 0.0),
            dispersion=self._scattered(rate, seconds),
            volatility=self.volatility,
            smoothed=self.smoothed
            + (rate - self.smoothed) * min(seconds / _SMOOTHING_SECONDS, 1.0),
            rate=rate,
            surprise=surprise,
            issued=self.issued,
        )

    def _scattered(self, rate: float, seconds: float) -> float:
        mean = max((rate + self.rate) / 2, _LEAST_RATE)
        scatter = (rate - self.rate) ** 2 / 2 * seconds / mean
        weight = min(seconds / _DISPERSION_SECONDS, 1.0)
        return self.dispersion + weight * (
            min(scatter, _MOST_SCATTER * self.dispersion) - self.dispersion
        )

    def _judged(self, now_ms: int) -> "Trend":
        """The trend after the forecasts that were for now."""
        due = [issued for issued in self.issued if issued.due_ms <= now_ms]
        if not due:
            return self
        volatility, later_ms = self.volatility, [issued.due_ms for issued in self.issued[1:]]
        for issued, next_ms in zip(due, [*later_ms, due[-1].due_ms], strict=False):
            spacing = (next_ms - issued.due_ms) / 1000
            error = ((self.smoothed - issued.rate) / issued.deviation) ** 2
            weight = min(spacing / _MEMORY_SECONDS, 1.0)
            volatility += weight * (min(error, _MOST_SQUARED_ERROR) - volatility)
        return replace(self, volatility=volatility, issued=self.issued[len(due) :])

    def _issuing(self, now_ms: int, ahead_seconds: float) -> "Trend":
        """The trend with a forecast more, where the last one is long enough ago."""
        due_ms = now_ms + round(ahead_seconds * 1000)
        if self.issued and due_ms - self.issued[-1].due_ms < ahead_seconds * 1000 / MOST_FORECASTS:
            return self
        forecast = self.forecast(ahead_seconds)
        given = forecast.variance / self.volatility if self.volatility > 0 else 0.0
        scatter = self.dispersion * self._scale / _SMOOTHING_SECONDS
        issued = Issued(due_ms=due_ms, rate=forecast.rate, deviation=math.sqrt(given + scatter))
        return replace(self, issued=(*self.issued, issued)[-MOST_FORECASTS:])
