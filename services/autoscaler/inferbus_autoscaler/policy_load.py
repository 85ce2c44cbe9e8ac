"""From what was heard to how many requests come: the fold that an objective rests on.

Arrivals are counted over steps of `LOOK_MS` and more, and each step moves the trend, the rhythm of
days where that is asked for, the size of a request and the caution. Where no router speaks the
engines' own count stands in. Invariant: the same memory comes back where an event brings nothing,
or a step isn't due.
"""

from dataclasses import replace

from inferbus_autoscaler.events import Counters, Demanded, Event, Sampled
from inferbus_autoscaler.facts import Facts, ObjectiveFacts, PolicyFacts
from inferbus_autoscaler.objective_memory import ObjectiveMemory
from inferbus_autoscaler.policy_arrivals import LOOK_MS, late_share
from inferbus_autoscaler.policy_daily import Daily
from inferbus_autoscaler.policy_headroom import cautious
from inferbus_autoscaler.policy_trend import Trend
from inferbus_contracts.resources.annotations import ObjectiveMetric

_SERVED_WEIGHT = 0.3
"""Of one step in what units were seen to get done while requests waited."""
_NO_TRAFFIC = 0.01
"""Requests per second; below that, and with none in the last step, counting rests."""


def heard(
    memory: ObjectiveMemory, policy: PolicyFacts, facts: Facts, event: Event
) -> ObjectiveMemory:
    """The memory after one event."""
    after = memory
    startup_ms = max(
        (
            target.startup_ms
            for member in policy.targets
            if (target := facts.target(member.key)) is not None
        ),
        default=0,
    )
    if startup_ms not in (0, memory.startup_ms):
        after = replace(after, startup_ms=startup_ms)
    if isinstance(event, Demanded):
        timed = policy.objective is not None and policy.objective.metric is ObjectiveMetric.TTFT
        arrivals = memory.arrivals.heard(event, timed=timed)
        if arrivals is not memory.arrivals:
            after = _counting(replace(after, arrivals=arrivals), event)
    elif isinstance(event, Sampled):
        engines = memory.engines.read(event, busy=memory.counting_since_ms is not None)
        if engines is not memory.engines:
            after = replace(after, engines=engines)
    return after


def stepped(
    memory: ObjectiveMemory,
    objective: ObjectiveFacts,
    now_ms: int,
    *,
    ahead_seconds: float,
    units: float,
    capacity: float | None,
) -> ObjectiveMemory:
    """The memory after a step, where one is due; `units` are ready, of `capacity` each."""
    if memory.counting_since_ms is None:
        return _beginning(memory, now_ms)
    seconds = (now_ms - memory.counting_since_ms) / 1000
    if seconds * 1000 < LOOK_MS:
        return memory
    came = memory.arrivals.came
    rate = came.requests / seconds
    if not memory.arrivals.spoken(now_ms):
        rate = max(rate, memory.engines.completed or 0.0)
    trend = _moved(memory.trend, rate, seconds, now_ms, ahead_seconds)
    daily = None
    if objective.daily:
        daily = (memory.daily or Daily()).after(trend, rate, seconds, now_ms, ahead_seconds)
    last_ms = memory.arrivals.last_ms
    if rate > 0:
        last_ms = max(last_ms or 0, memory.counting_since_ms)
    arrivals = replace(memory.arrivals, came=Counters(), last_ms=last_ms)
    backlog = memory.backlog(now_ms)
    late = _late(memory, objective, backlog, None if capacity is None else capacity * units)
    worth = seconds * rate / max(trend.level, rate, _NO_TRAFFIC)
    rests = rate == 0 and trend.level < _NO_TRAFFIC and backlog == 0
    return replace(
        memory,
        arrivals=arrivals,
        sizes=memory.sizes.after(came),
        trend=trend,
        daily=daily,
        shown=_shown(memory.shown, trend.level, came.completions / seconds, units, backlog),
        counting_since_ms=None if rests else now_ms,
        caution=cautious(memory.caution, objective.late_share, worth, late * worth),
    )


def _counting(memory: ObjectiveMemory, event: Demanded) -> ObjectiveMemory:
    """Counting begins where the first interval did."""
    if memory.counting_since_ms is not None or memory.arrivals.came.requests == 0:
        return memory
    return replace(memory, counting_since_ms=event.at_ms - event.interval_ms)


def _beginning(memory: ObjectiveMemory, now_ms: int) -> ObjectiveMemory:
    """Counting begins with what the engines count, where no router speaks."""
    if not memory.engines.completed or memory.arrivals.spoken(now_ms):
        return memory
    return replace(memory, counting_since_ms=now_ms)


def _moved(
    trend: Trend | None, rate: float, seconds: float, now_ms: int, ahead_seconds: float
) -> Trend:
    if trend is None:
        return Trend.first(rate, seconds)
    if trend.level < _NO_TRAFFIC < rate:
        return trend.again(rate, seconds)
    return trend.after(rate, seconds, now_ms, ahead_seconds)


def _shown(known: float, rate: float, completed: float, units: float, backlog: int) -> float:
    """What a unit was seen to serve: all that comes while nothing waits, else what it gets done."""
    if units <= 0:
        return known
    if backlog == 0:
        return max(known, rate / units)
    if backlog <= units or completed <= 0:
        return known
    served = completed / units
    return known + _SERVED_WEIGHT * (served - known) if known > 0 else served


def _late(
    memory: ObjectiveMemory, objective: ObjectiveFacts, backlog: int, serves: float | None
) -> float:
    """The share of requests that the objective calls late: as timed, or as the queue tells."""
    answered = memory.arrivals.came.first_tokens
    if objective.metric is ObjectiveMetric.TTFT and sum(answered) > 0:
        return late_share(answered, objective.limit_ms)
    if serves is None or backlog == 0:
        return 0.0
    return 1.0 if backlog * 1000 > serves * objective.limit_ms else 0.0
