"""How much capacity beyond the expected load an objective needs.

Two things can make requests wait: the rate takes another course than forecast, and arrivals come in
bursts. The first needs a quantile of the forecast's error, whose tails are heavy; the second is the
slack at which the queue of a server in heavy traffic exceeds the limit as rarely as asked for
(Kingman's diffusion approximation). Both are scaled by a caution that follows what became of the
objective, so that neither has to be right. Invariant: more late requests never lower the caution.
"""

import functools
import math

from inferbus_autoscaler.policy_trend import Forecast

_FOLLOWS_SECONDS = 300.0
"""A shortfall that begins lasts about the start-up time; this is how long one is no other's."""
_SHARE_OF_QUANTILE = 0.22
"""What is left to cover of an error's quantile, because a fleet that is slow to shrink stands above
what the load needs most of the time."""
_SHARE_OF_BURSTS = 0.8
"""Likewise of the slack that a steady load would need."""
_BUDGET_SHARE = 0.48
"""Of the requests that may be late, as many are aimed at."""
_CAUTION_PER_LATE_SECOND = 4e-6
_REFERENCE_SHARE = 0.005
_MOST_CAUTION = 6.0

FIRST_CAUTION = 1.0


def headroom(
    forecast: Forecast,
    dispersion: float,
    *,
    late_share: float,
    limit_seconds: float,
    startup_seconds: float,
    caution: float,
) -> float:
    """Rate to be served beyond the forecast one.

    At most `late_share` (above 0, below 1) of requests may wait longer than `limit_seconds`;
    `dispersion` is the variance-to-mean ratio of arrivals.
    """
    surprise = surprises(late_share, startup_seconds) * math.sqrt(forecast.variance)
    bursts = _SHARE_OF_BURSTS * dispersion * math.log(1 / late_share) / (2 * limit_seconds)
    return caution * math.hypot(surprise, bursts)


def surprises(late_share: float, startup_seconds: float) -> float:
    """Standard deviations of a forecast to be covered.

    A shortfall goes on for the start-up time, and its queue grows while it does: the longer that
    is, the rarer may one begin.
    """
    alone = _FOLLOWS_SECONDS / (_FOLLOWS_SECONDS + startup_seconds)
    return _SHARE_OF_QUANTILE * heavy_quantile(late_share * alone**2)


def cautious(caution: float, late_share: float, seconds: float, late_seconds: float) -> float:
    """The caution after so many seconds' worth of requests, of which so many were late."""
    gain = _CAUTION_PER_LATE_SECOND / math.sqrt(late_share * _REFERENCE_SHARE)
    changed = caution + gain * (late_seconds - _BUDGET_SHARE * late_share * seconds)
    return min(max(changed, 0.0), _MOST_CAUTION)


@functools.lru_cache(maxsize=1024)
def heavy_quantile(share: float) -> float:
    """What Student's t with 3 degrees of freedom exceeds with probability `share`, below a half."""
    low, high = 0.0, 1e6
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if _exceeds(middle) > share else (low, middle)
    return high


def _exceeds(value: float) -> float:
    scaled = value / math.sqrt(3)
    return 0.5 - (scaled / (1 + scaled * scaled) + math.atan(scaled)) / math.pi
