"""What is kept of a target that is scaled by an objective.

Invariant: small whatever the traffic (a bounded number of routers and forecasts), and equal as long
as nothing comes in and nothing is left to be done.
"""

from dataclasses import dataclass, field

from inferbus_autoscaler.policy_arrivals import Arrivals
from inferbus_autoscaler.policy_daily import Daily
from inferbus_autoscaler.policy_engines import Engines
from inferbus_autoscaler.policy_headroom import FIRST_CAUTION
from inferbus_autoscaler.policy_served import Sizes
from inferbus_autoscaler.policy_surplus import Surplus
from inferbus_autoscaler.policy_trend import Forecast, Trend


@dataclass(frozen=True, kw_only=True)
class ObjectiveMemory:
    """One target, or one mix."""

    since_ms: int = 0
    """When it was first looked at."""
    arrivals: Arrivals = field(default_factory=Arrivals)
    engines: Engines = field(default_factory=Engines)
    sizes: Sizes = field(default_factory=Sizes)
    trend: Trend | None = None
    """None before the first traffic; without traffic it rests."""
    daily: Daily | None = None
    """None where it isn't asked for, and before the first traffic."""
    counting_since_ms: int | None = None
    """From when on arrivals are counted for the next step; None: there is no traffic."""
    shown: float = 0.0
    """Requests per second that a replica (of a mix: a capacity unit) was seen to serve: the most
    while nothing waited, and what it got done while requests did."""
    caution: float = FIRST_CAUTION
    surplus: Surplus = field(default_factory=Surplus)
    startup_ms: int = 0
    """How long a replica took to become ready, as last measured; 0: never seen."""

    @property
    def quiet_since_ms(self) -> int:
        """Since when nothing has come in."""
        last_ms = self.arrivals.last_ms
        return self.since_ms if last_ms is None else last_ms

    def forecast(self, now_ms: int, seconds: float) -> Forecast | None:
        """The rate in so many seconds; None where there is no traffic."""
        if self.trend is None or self.counting_since_ms is None:
            return None
        if self.daily is None:
            return self.trend.forecast(seconds)
        return self.daily.forecast(self.trend, now_ms, seconds)

    def backlog(self, now_ms: int) -> int:
        """Requests that wait, in routers and engines."""
        return self.arrivals.queued(now_ms) + self.engines.waiting
