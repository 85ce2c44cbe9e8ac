"""A fleet behind a router, second by second: what an objective is for.

A ready replica serves `SERVES` requests a second, and a queue forms where that isn't enough. A
started replica serves after the start-up time; what is taken away goes at once, starting ones
first. Times are virtual.
"""

from collections import deque
from typing import Any

from inferbus_autoscaler.events import (
    COMPLETED,
    WAITING,
    Counters,
    Demanded,
    MetricValue,
    Sampled,
    TargetReading,
)
from inferbus_autoscaler.facts import Facts, ObjectiveFacts, PolicyFacts
from inferbus_contracts.events.metrics import MetricKind
from inferbus_contracts.resources.annotations import ObjectiveMetric
from services.autoscaler.tests.builders import KEY, Fleet, policy

SERVES = 2.0
SECOND_MS = 1_000
SAMPLE_SECONDS = 5


def objective(**changes: Any) -> ObjectiveFacts:
    """At most 0.5 % wait for longer than 2 s; a replica serves `SERVES`."""
    given: dict[str, Any] = {
        "late_share": 0.005,
        "limit_ms": 2_000,
        "metric": ObjectiveMetric.WAIT,
        "capacity": SERVES,
    }
    return ObjectiveFacts(**(given | changes))


def by_objective(**changes: Any) -> PolicyFacts:
    """A policy that has an objective and no metric, bounds 1 to 100."""
    given: dict[str, Any] = {"metrics": {}, "objective": objective()}
    return policy(**(given | changes))


class _TownFleet(Fleet):
    """A fleet whose replicas take their time."""

    def __init__(self, town: "Town", replicas: int, the_policy: PolicyFacts) -> None:
        super().__init__(replicas, the_policy)
        self._town = town

    def facts(self, **changes: Any) -> Facts:
        """The facts as they stand."""
        return super().facts(**self._town.facts(), **changes)


class Town:
    """One target, its router, its engines, and the reconciler that does what is decided."""

    def __init__(
        self,
        replicas: int,
        startup_seconds: int = 60,
        *,
        engines_count: bool = False,
        **changes: Any,
    ) -> None:
        self.startup_seconds = startup_seconds
        self.ready = replicas
        self.starting: deque[int] = deque()
        self.fleet = _TownFleet(self, replicas, by_objective(**changes))
        self.second = 0
        self.queued = 0.0
        self.counted = 0
        self.late = 0
        self.seen: list[int] = []
        """Replicas after each second."""
        self.missing_pods = 0
        self.engines_count = engines_count
        self.served = 0.0
        """In the last second."""
        self.routers_speak = True
        self.collector_speaks = True

    def run(self, seconds: int, requests_per_second: int) -> "Town":
        """Let time pass under a load."""
        for _ in range(seconds):
            self._second(requests_per_second)
        return self

    @property
    def replicas(self) -> int:
        """Ready and starting ones."""
        return self.fleet.replicas

    def facts(self) -> dict[str, Any]:
        """The target as the reconciler tells it."""
        return {
            "ready": self.ready,
            "starting": len(self.starting),
            "startup_ms": self.startup_seconds * SECOND_MS,
        }

    def sample(self) -> Sampled:
        """What the collector reads."""
        waiting = MetricValue(name=WAITING, kind=MetricKind.GAUGE, value=self.queued)
        served = MetricValue(name=COMPLETED, kind=MetricKind.RATE, value=self.served)
        reading = TargetReading(
            target=KEY,
            metrics=(waiting, served) if self.engines_count else (waiting,),
            ready_pods=self.ready,
            missing_pods=self.missing_pods,
        )
        return Sampled(taken_at_ms=self.fleet.now_ms, readings=(reading,))

    def told(self, came: int) -> Demanded:
        """What the router tells of the second that is over."""
        return Demanded(
            at_ms=self.fleet.now_ms,
            router="router",
            totals=Counters(requests=self.counted),
            interval=Counters(requests=came),
            interval_ms=SECOND_MS,
        )

    def _second(self, came: int) -> None:
        self.second += 1
        self._start_and_stop()
        capacity = self.ready * SERVES
        self.counted += came
        self.served = min(self.queued + came, capacity)
        self.queued += came - self.served
        if came and self.queued > 2 * capacity:
            self.late += came
        self.fleet.advance(SECOND_MS)
        if came and self.routers_speak:
            self.fleet.feed(self.told(came))
        if self.second % SAMPLE_SECONDS == 0 and self.collector_speaks:
            self.fleet.feed(self.sample())
        self.seen.append(self.replicas)

    def _start_and_stop(self) -> None:
        while self.starting and self.starting[0] <= self.second:
            self.starting.popleft()
            self.ready += 1
        while self.ready + len(self.starting) < self.replicas:
            self.starting.append(self.second + self.startup_seconds)
        while self.ready + len(self.starting) > self.replicas:
            if self.starting:
                self.starting.pop()
            else:
                self.ready -= 1
