"""A mix on a manual clock: both deciders' folds and cores, and a machine room of a given size.

Pods are placed where their target has a slot free, and are ready a start-up later. Invariant: the
deciders see nothing but events, as on the bus; every decision is carried out at once.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from inferbus_autoscaler import core as autoscaler
from inferbus_autoscaler.events import sampled
from inferbus_autoscaler.fact_fold import FactFold as ScalerFold
from inferbus_autoscaler.facts import DeciderSettings as ScalerSettings
from inferbus_autoscaler.outcomes import Demand
from inferbus_autoscaler.state import TargetState
from inferbus_contracts.deciding import Applied, ClearTimer, Origin, SetTimer, Woken
from inferbus_contracts.events.metrics import (
    OUTPUT_TOKENS,
    WAITING_REQUESTS,
    MetricAggregate,
    MetricKind,
    MetricsSampled,
    TargetSample,
)
from inferbus_contracts.events.scaling import ApplyOutcome, ScalingAllocated, ScalingDemanded
from inferbus_contracts.events.spec import SpecChanged
from inferbus_contracts.events.workload import PodFact, WorkloadObserved
from inferbus_contracts.keys import ObjectKey
from inferbus_optimizer import core as optimizer
from inferbus_optimizer.events import demanded
from inferbus_optimizer.fact_fold import FactFold as MixerFold
from inferbus_optimizer.facts import DeciderSettings as MixerSettings
from inferbus_optimizer.outcomes import Allocate
from inferbus_optimizer.state import MixState

T0 = 1_000_000_000_000
STEP_MS = 5_000
POLICY = ObjectKey("AutoscalingPolicy", "default", "mix")
PER_UNIT = 10.0
"""Load that one capacity unit carries."""


@dataclass
class Pod:
    """One replica."""

    name: str
    created_ms: int
    placed_ms: int | None = None


@dataclass
class Target:
    """One target, its bounds, and the machines for it."""

    name: str
    cost: int
    replicas: int
    units: float
    """What a replica serves, in capacity units."""
    least: int = 0
    most: int = 8
    slots: int = 99
    startup_ms: int = 20_000
    annotations: dict[str, str] = field(default_factory=dict)
    generation: int = 1
    pods: list[Pod] = field(default_factory=list)
    made: int = 0

    @property
    def key(self) -> ObjectKey:
        return ObjectKey("ModelServing", "default", self.name)

    @property
    def placed(self) -> int:
        return sum(pod.placed_ms is not None for pod in self.pods)

    def ready(self, now_ms: int) -> list[Pod]:
        return [
            pod
            for pod in self.pods
            if pod.placed_ms is not None and now_ms - pod.placed_ms >= self.startup_ms
        ]

    def reconcile(self, now_ms: int) -> None:
        """Create and delete pods (those without a place first), and place what has one."""
        self.pods.sort(key=lambda pod: (pod.placed_ms is None, pod.created_ms))
        while len(self.pods) < self.replicas:
            self.pods.append(Pod(f"{self.name}-{self.made}", now_ms))
            self.made += 1
        del self.pods[self.replicas :]
        while self.placed > self.slots:
            next(pod for pod in reversed(self.pods) if pod.placed_ms is not None).placed_ms = None
        for pod in self.pods:
            if pod.placed_ms is None and self.placed < self.slots:
                pod.placed_ms = now_ms


class MixWorld:
    """A mix under one policy."""

    def __init__(self, *targets: Target, rate_percent: int = 0, **settings: int) -> None:
        self.targets = targets
        self.now_ms = T0
        self.load = 0.0
        """In capacity units."""
        self.waiting = 0
        self.tokens_per_unit = 1000.0
        self.demands: list[ScalingDemanded] = []
        self.allocations: list[ScalingAllocated] = []
        self._folds = (ScalerFold(ScalerSettings(**settings)), MixerFold(MixerSettings()))
        self._scaler, self._mixer = TargetState(), MixState()
        self._timers: dict[str, int] = {}
        params = [
            {
                "target": {"targetRef": {"kind": "ModelServing", "name": target.name}},
                "minReplicas": target.least,
                "maxReplicas": target.most,
                "cost": target.cost,
            }
            for target in targets
        ]
        policy = {
            "apiVersion": "workload.serving.volcano.sh/v1alpha1",
            "kind": "AutoscalingPolicy",
            "metadata": {"name": POLICY.name, "namespace": "default"},
            "spec": {
                "metrics": [{"name": "load", "targetValue": PER_UNIT}],
                "heterogeneousTarget": {
                    "params": params,
                    "costExpansionRatePercent": rate_percent,
                },
            },
        }
        self._changed(POLICY, "uid of the policy", 1, policy)
        for target in targets:
            self._changed_target(target)
            target.reconcile(self.now_ms)
            for pod in target.pods:
                pod.placed_ms = None if pod.placed_ms is None else T0 - target.startup_ms
            self._observed(target)

    def run(self, seconds: int) -> list[tuple[int, ...]]:
        """Let time pass; the replicas that were asked for after each step."""
        seen = []
        for _ in range(seconds * 1000 // STEP_MS):
            self.step()
            seen.append(tuple(target.replicas for target in self.targets))
        return seen

    def step(self) -> None:
        """One round of samples, and all that follows from it."""
        self.now_ms += STEP_MS
        for target in self.targets:
            target.reconcile(self.now_ms)
            self._observed(target)
        for name in [name for name, due_ms in self._timers.items() if due_ms <= self.now_ms]:
            due_ms = self._timers.pop(name)
            (self._scale if name == "scaler" else self._mix)(Woken(due_ms=due_ms))
        self._scale(sampled(self._sample(), Origin()))

    def placed_units(self) -> float:
        """What the replicas that have a place serve, in capacity units."""
        return sum(target.units * target.placed for target in self.targets)

    def _scale(self, event: Any) -> None:
        facts = self._folds[0].facts(POLICY, "", self.now_ms)
        self._scaler, effects = autoscaler.decide(self._scaler, event, facts, self.now_ms)
        self._scaler = TargetState.from_dict(self._scaler.to_dict())
        self._keep_time("scaler", effects)
        for effect in effects:
            if isinstance(effect, Demand):
                assert autoscaler.recompute(effect.data.record) == effect.data.to_json()
                self.demands.append(effect.data)
                self._mix(demanded(effect.data, Origin()))

    def _mix(self, event: Any) -> None:
        decision_id = str(len(self.allocations))
        facts = self._folds[1].facts(POLICY, decision_id, self.now_ms)
        self._mixer, effects = optimizer.decide(self._mixer, event, facts, self.now_ms)
        self._mixer = MixState.from_dict(self._mixer.to_dict())
        self._keep_time("mixer", effects)
        for effect in effects:
            if isinstance(effect, Allocate):
                assert optimizer.recompute(effect.data.record) == effect.data.to_json()
                self.allocations.append(effect.data)
                self._carry_out(effect.data)

    def _carry_out(self, allocated: ScalingAllocated) -> None:
        by_key = {str(target.key): target for target in self.targets}
        for share in allocated.allocations:
            target = by_key[share.target]
            outcome = ApplyOutcome.UNCHANGED
            if share.desired != target.replicas:
                target.replicas, outcome = share.desired, ApplyOutcome.APPLIED
                target.generation += 1
                self._changed_target(target)
                target.reconcile(self.now_ms)
                self._observed(target)
            answer = Applied(
                target=share.target,
                decision_id=str(len(self.allocations)),
                outcome=outcome,
                replicas=target.replicas,
                generation=target.generation,
                uid=f"uid of {target.name}",
            )
            self._mix(answer)
            self._scale(answer)

    def _sample(self) -> MetricsSampled:
        serving = {target.name: target.ready(self.now_ms) for target in self.targets}
        units = sum(target.units * len(serving[target.name]) for target in self.targets)
        parts = []
        for target in self.targets:
            pods = len(serving[target.name])
            share = target.units * pods / units if units else 0.0
            tokens = self.tokens_per_unit * min(self.load * share, target.units * pods)
            metrics = [_metric("load", MetricKind.GAUGE, PER_UNIT * self.load * share, pods)]
            beside = [
                _metric(OUTPUT_TOKENS, MetricKind.RATE, tokens, pods),
                _metric(WAITING_REQUESTS, MetricKind.GAUGE, float(self.waiting * pods), pods),
            ]
            parts.append(
                TargetSample(
                    target=str(target.key),
                    metrics=metrics if pods else [],
                    ready_pods=pods,
                    unready_pods=len(target.pods) - pods,
                    beside=beside if pods else None,
                )
            )
        return MetricsSampled(
            policy=str(POLICY), taken_at_ms=self.now_ms, window_ms=15_000, targets=parts
        )

    def _observed(self, target: Target) -> None:
        ready = target.ready(self.now_ms)
        pods = [
            PodFact(
                name=pod.name,
                uid=pod.name,
                phase="Pending" if pod.placed_ms is None else "Running",
                group=pod.name,
                ready=pod in ready,
                starting_since_ms=pod.created_ms,
                ready_since_ms=(pod.placed_ms or 0) + target.startup_ms if pod in ready else None,
                unplaced_since_ms=pod.created_ms if pod.placed_ms is None else None,
            )
            for pod in target.pods
        ]
        fact = WorkloadObserved(
            uid=f"uid of {target.name}", generation=target.generation, pods=pods
        )
        self._folds[0].take(target.key, fact, self.now_ms)

    def _changed_target(self, target: Target) -> None:
        document = {
            "apiVersion": "workload.serving.volcano.sh/v1alpha1",
            "kind": "ModelServing",
            "metadata": {
                "name": target.name,
                "namespace": "default",
                "annotations": target.annotations,
            },
            "spec": {"replicas": target.replicas},
        }
        self._changed(target.key, f"uid of {target.name}", target.generation, document)

    def _changed(self, key: ObjectKey, uid: str, generation: int, document: Any) -> None:
        fact = SpecChanged(uid=uid, generation=generation, digest="", object=document)
        for fold in self._folds:
            fold.take(key, fact, self.now_ms)

    def _keep_time(self, name: str, effects: Iterable[object]) -> None:
        for effect in effects:
            if isinstance(effect, SetTimer):
                self._timers[name] = effect.at_ms
            elif isinstance(effect, ClearTimer):
                self._timers.pop(name, None)


def _metric(name: str, kind: MetricKind, value: float, pods: int) -> MetricAggregate:
    return MetricAggregate(name=name, kind=kind, value=value, pods=pods)
