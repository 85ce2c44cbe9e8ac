"""The largest memory of an objective, for the size of the largest record.

Nothing is estimated: as many routers and forecasts as are kept, and every number as long as it
gets.
"""

from inferbus_autoscaler.events import Counters
from inferbus_autoscaler.objective_memory import ObjectiveMemory
from inferbus_autoscaler.policy_arrivals import MOST_ROUTERS, Arrivals, RouterCount
from inferbus_autoscaler.policy_daily import (
    MOST_AWAITED,
    MOST_CHANGE,
    SLOTS,
    Awaited,
    Daily,
    Skill,
    Slot,
)
from inferbus_autoscaler.policy_engines import Engines
from inferbus_autoscaler.policy_served import Sizes
from inferbus_autoscaler.policy_surplus import Surplus
from inferbus_autoscaler.policy_trend import MOST_FORECASTS, Issued, Trend
from inferbus_contracts.events.demand import LATENCY_BOUNDS_MS

_NAME = 63 * "r"
"""A host's longest name (RFC 1123)."""
_COUNT = 999_999_999
_LONG = -1.2345678901234567e-300
"""As many characters as a float64 can need."""


def worst_memory(late_ms: int, *, daily: bool) -> ObjectiveMemory:
    """A memory that no other is larger than; `late_ms` is as late as times get.

    `daily`: the rhythm of days is learned.
    """
    counters = Counters(
        requests=_COUNT,
        completions=_COUNT,
        prompt_tokens=_COUNT * 1000,
        output_tokens=_COUNT * 1000,
        first_tokens=(len(LATENCY_BOUNDS_MS) + 1) * (_COUNT,),
    )
    router = RouterCount(router=_NAME, told_ms=late_ms, counters=counters, queued=_COUNT)
    issued = Issued(due_ms=late_ms, rate=_LONG, deviation=_LONG)
    return ObjectiveMemory(
        since_ms=late_ms,
        arrivals=Arrivals(routers=MOST_ROUTERS * (router,), came=counters, last_ms=late_ms),
        engines=Engines(sampled_ms=late_ms, waiting=_COUNT, completed=_LONG, whole=True),
        sizes=Sizes(requests=_COUNT, prompts=_COUNT, prompt_tokens=_LONG, output_tokens=_LONG),
        trend=Trend(
            level=_LONG,
            slope=_LONG,
            level_variance=_LONG,
            covariance=_LONG,
            slope_variance=_LONG,
            dispersion=_LONG,
            volatility=_LONG,
            smoothed=_LONG,
            rate=_LONG,
            surprise=_LONG,
            issued=MOST_FORECASTS * (issued,),
        ),
        daily=_worst_daily(late_ms) if daily else None,
        counting_since_ms=late_ms,
        shown=_LONG,
        caution=_LONG,
        surplus=Surplus(accrued=late_ms, spare=_COUNT, since_ms=late_ms),
        startup_ms=_COUNT,
    )


def _worst_daily(late_ms: int) -> Daily:
    return Daily(
        changes=SLOTS * (-MOST_CHANGE,),
        learned=_COUNT,
        slot=Slot(number=late_ms, requests=_LONG, seconds=_LONG),
        before=_LONG,
        awaited=MOST_AWAITED * (Awaited(due_ms=late_ms, rate=_LONG, correction=_LONG),),
        skill=Skill(forecasts=_LONG, errors=_LONG, corrections=_LONG, agreement=_LONG),
    )
