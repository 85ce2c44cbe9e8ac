"""What stands around the autoscaler's core, played for a referee of autoscaling policies.

A router that tells its counters, a collector that tells what waits in the engines, and a reconciler
that does at once what is decided. Invariant: the core is the service's own, and sees what it sees
there.
"""

from dataclasses import replace
from typing import Protocol

from inferbus_autoscaler.core import decide
from inferbus_autoscaler.events import (
    WAITING,
    Counters,
    Demanded,
    Event,
    MetricValue,
    Sampled,
    TargetReading,
)
from inferbus_autoscaler.facts import Facts, PolicyFacts, PolicyTarget, TargetFacts
from inferbus_autoscaler.outcomes import Decide
from inferbus_autoscaler.policy_reading import objective_facts
from inferbus_autoscaler.state import TargetState
from inferbus_contracts.deciding import Applied
from inferbus_contracts.events.metrics import MetricKind
from inferbus_contracts.events.scaling import ApplyOutcome
from inferbus_contracts.resources.annotations import parse_objective

_KEY = "ModelServing/arena/model"
_EPOCH_MS = 1_700_000_000_000
_MOST_REPLICAS = 1_000_000


class Observation(Protocol):
    """What a referee shows a policy."""

    second: int
    arrivals: float
    seconds: int
    queued: float
    ready: int
    starting: int
    capacity_per_replica: float


class Untuned:
    """A target with an objective and nothing else."""

    period_s = 5

    def __init__(self, startup_s: int, objective: str, *, daily: bool = False) -> None:
        self._startup_ms = startup_s * 1000
        self._objective = objective_facts(parse_objective(objective), None, daily=daily)
        self._state = TargetState()
        self._counted = 0.0
        self._generation = 1
        self._replicas = 0
        self._decisions = 0

    def decide(self, seen: Observation) -> int | None:
        """Replicas, starting ones included."""
        self._replicas = seen.ready + seen.starting
        before, self._counted = round(self._counted), self._counted + seen.arrivals
        now_ms = _EPOCH_MS + seen.second * 1000
        queued = MetricValue(name=WAITING, kind=MetricKind.GAUGE, value=seen.queued)
        reading = TargetReading(target=_KEY, metrics=(queued,), ready_pods=seen.ready)
        arrived = Counters(requests=round(self._counted) - before)
        self._feed(Sampled(taken_at_ms=now_ms, readings=(reading,)), seen, now_ms)
        self._feed(
            Demanded(
                at_ms=now_ms,
                router="router",
                totals=Counters(requests=round(self._counted)),
                interval=arrived,
                interval_ms=seen.seconds * 1000,
            ),
            seen,
            now_ms,
        )
        return self._replicas

    def _feed(self, event: Event, seen: Observation, now_ms: int) -> None:
        self._state, effects = decide(self._state, event, self._facts(seen), now_ms)
        for effect in effects:
            if isinstance(effect, Decide):
                self._decisions += 1
                self._apply(effect.data.desired)
                self._feed(self._answer(), seen, now_ms)

    def _apply(self, desired: int) -> None:
        if desired != self._replicas:
            self._replicas, self._generation = desired, self._generation + 1

    def _answer(self) -> Applied:
        return Applied(
            target=_KEY,
            decision_id=str(self._decisions),
            outcome=ApplyOutcome.APPLIED,
            replicas=self._replicas,
            generation=self._generation,
            uid="target",
        )

    def _facts(self, seen: Observation) -> Facts:
        objective = replace(self._objective, capacity=seen.capacity_per_replica)
        target = TargetFacts(
            key=_KEY,
            uid="target",
            generation=self._generation,
            replicas=self._replicas,
            ready=seen.ready,
            starting=seen.starting,
            startup_ms=self._startup_ms,
        )
        policy = PolicyFacts(
            key="AutoscalingPolicy/arena/policy",
            uid="policy",
            generation=1,
            digest="",
            metrics=(),
            objective=objective,
            targets=(PolicyTarget(key=_KEY, min_replicas=1, max_replicas=_MOST_REPLICAS),),
        )
        return Facts(policy=policy, targets=(target,), decision_id=str(self._decisions))
