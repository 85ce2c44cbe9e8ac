"""What the routers have let in: counted once, however many routers tell it and however often.

A router tells its counters as they stand, so that a second that is left out, late or told twice
costs nothing: what counts is the difference to what it told before. Invariant: a request counts
once; between two looks at a router the state doesn't change.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from inferbus_autoscaler.events import Counters, Demanded
from inferbus_contracts.events.demand import LATENCY_BOUNDS_MS

LOOK_MS = 5_000
"""A router's counters are looked at so often; its other seconds change nothing."""

_SILENT_MS = 3 * LOOK_MS
"""A router that says nothing for so long has nothing waiting."""
_FORGOTTEN_MS = 600_000
MOST_ROUTERS = 16
"""That are remembered; of each further one every second counts by itself, as it is told."""


@dataclass(frozen=True, kw_only=True)
class RouterCount:
    """One router as it was last looked at."""

    router: str
    told_ms: int
    counters: Counters
    queued: int = 0
    """Requests that wait in the router."""


@dataclass(frozen=True, kw_only=True)
class Arrivals:
    """What came since the last step, over all routers."""

    routers: tuple[RouterCount, ...] = ()
    came: Counters = field(default_factory=Counters)
    last_ms: int | None = None
    """When a request last came in or waited; None before the first."""

    def heard(self, event: Demanded, *, timed: bool = True) -> "Arrivals":
        """The arrivals after one event; themselves where it is too early to look again.

        `timed`: whether the times to the first token are to be kept.
        """
        totals, interval = event.totals, event.interval
        if totals is None:
            return replace(self, last_ms=event.at_ms) if event.held else self
        known = next((one for one in self.routers if one.router == event.router), None)
        if known is not None and event.at_ms - known.told_ms < LOOK_MS:
            return self
        if totals.first_tokens and not timed:
            totals, interval = replace(totals, first_tokens=()), replace(interval, first_tokens=())
        routers = self._with(
            RouterCount(
                router=event.router, told_ms=event.at_ms, counters=totals, queued=event.queued
            )
        )
        goes_on = known is not None and known.counters.requests <= totals.requests
        new = totals.since(known.counters) if known and goes_on else interval
        return replace(
            self,
            routers=routers,
            came=self.came.plus(new),
            last_ms=event.at_ms if event.queued or new.requests else self.last_ms,
        )

    def queued(self, now_ms: int) -> int:
        """Requests that wait in routers."""
        return sum(one.queued for one in self.routers if now_ms - one.told_ms <= _SILENT_MS)

    def spoken(self, now_ms: int) -> bool:
        """Whether a router has told anything of late."""
        return any(now_ms - one.told_ms <= _SILENT_MS for one in self.routers)

    def _with(self, told: RouterCount) -> tuple[RouterCount, ...]:
        """The routers with one looked at anew, where there is room for it."""
        others = [
            one
            for one in self.routers
            if one.router != told.router and told.told_ms - one.told_ms < _FORGOTTEN_MS
        ]
        if len(others) == MOST_ROUTERS:
            return tuple(others)
        return tuple(sorted((*others, told), key=lambda one: one.router))


def late_share(buckets: Sequence[int], limit_ms: int) -> float:
    """The share of answers that took longer than `limit_ms`; 0 without any.

    Inside a bucket they are taken to be spread evenly; what is above the last bound is late where
    the limit isn't.
    """
    total = sum(buckets)
    if total == 0:
        return 0.0
    index = bisect_left(LATENCY_BOUNDS_MS, limit_ms)
    if index == len(LATENCY_BOUNDS_MS):
        return 0.0
    low = LATENCY_BOUNDS_MS[index - 1] if index else 0
    part = (LATENCY_BOUNDS_MS[index] - limit_ms) / (LATENCY_BOUNDS_MS[index] - low)
    return (sum(buckets[index + 1 :]) + part * buckets[index]) / total
