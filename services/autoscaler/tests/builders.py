"""Short ways to say what a test is about; everything else takes a harmless default."""

from collections.abc import Sequence
from typing import Any

from inferbus_autoscaler.core import decide
from inferbus_autoscaler.events import Event, MetricValue, Sampled, TargetReading
from inferbus_autoscaler.facts import (
    Behaviour,
    DeciderSettings,
    Facts,
    MetricTarget,
    PanicPolicy,
    PolicyFacts,
    PolicyTarget,
    StepPolicy,
    TargetFacts,
)
from inferbus_autoscaler.outcomes import Decide, Demand, Effect
from inferbus_autoscaler.state import TargetState
from inferbus_contracts.deciding import Applied, SetTimer, Woken
from inferbus_contracts.events.metrics import MetricKind
from inferbus_contracts.events.scaling import ApplyOutcome, ScalingDecided

T0 = 1_000_000_000_000
"""Start of all tests' time, ms."""

STEP_MS = 15_000
KEY = "ModelServing/default/llm"
POLICY = "AutoscalingPolicy/default/policy"
FREE = Behaviour()
"""No limits at all."""

WEBHOOK_DOWN = StepPolicy(
    instances=0, percent=100, period_ms=60_000, select="Or", stabilisation_ms=300_000
)
WEBHOOK_UP = StepPolicy(instances=4, percent=100, period_ms=60_000, select="Or")
WEBHOOK_DEFAULTS = Behaviour(
    scale_down=WEBHOOK_DOWN,
    scale_up=WEBHOOK_UP,
    panic=PanicPolicy(percent=0, period_ms=0, threshold_percent=200, hold_ms=0),
)
"""What upstream's webhook fills in where no behaviour is given (autoscaling spec 1.7)."""


def policy(**changes: Any) -> PolicyFacts:
    """A policy of one target with the metric `load`, target 10, bounds 1 to 100."""
    low, high = changes.pop("bounds", (1, 100))
    metrics = changes.pop("metrics", {"load": 10.0})
    given: dict[str, Any] = {
        "key": POLICY,
        "uid": "policy-uid",
        "generation": 1,
        "digest": "policy-digest",
        "metrics": tuple(MetricTarget(name=name, target=t) for name, t in metrics.items()),
        "tolerance_percent": 10,
        "behaviour": FREE,
        "targets": (PolicyTarget(key=KEY, min_replicas=low, max_replicas=high),),
    }
    return PolicyFacts(**(given | changes))


def target(replicas: int, **changes: Any) -> TargetFacts:
    """The single target with all its replicas ready, unless told otherwise."""
    given: dict[str, Any] = {
        "key": KEY,
        "uid": "target-uid",
        "generation": 1,
        "replicas": replicas,
        "ready": replicas,
    }
    return TargetFacts(**(given | changes))


def facts(replicas: int, the_policy: PolicyFacts | None = None, **changes: Any) -> Facts:
    """Facts about the single target; `target` gives changes of its facts."""
    the_target = target(replicas, **changes.pop("target", {}))
    return Facts(
        policy=policy() if the_policy is None else the_policy, targets=(the_target,), **changes
    )


def metric(value: float | None, name: str = "load", **changes: Any) -> MetricValue:
    """One gauge."""
    given: dict[str, Any] = {"name": name, "kind": MetricKind.GAUGE, "value": value}
    return MetricValue(**(given | changes))


def sample(load: float | Sequence[MetricValue] | None, at_ms: int = T0, **changes: Any) -> Sampled:
    """A sample of the single target: one gauge, several metrics, or (None) nothing at all."""
    if load is None:
        metrics: tuple[MetricValue, ...] = ()
    elif isinstance(load, int | float):
        metrics = (metric(float(load)),)
    else:
        metrics = tuple(load)
    pods: dict[str, Any] = {"ready_pods": 1}
    reading = TargetReading(target=KEY, metrics=metrics, **(pods | changes))
    return Sampled(taken_at_ms=at_ms, readings=(reading,))


MIX = ("ModelServing/default/h100", "ModelServing/default/a100")


def mix_facts(replicas: tuple[int, int], capacity: float = 1.0, **changes: Any) -> Facts:
    """A mix of two targets, bounds 0 to 4 and 1 to 8; `capacity` is that of the first."""
    members = (
        PolicyTarget(key=MIX[0], min_replicas=0, max_replicas=4, cost=100, capacity=capacity),
        PolicyTarget(key=MIX[1], min_replicas=1, max_replicas=8, cost=60),
    )
    mix = policy(**({"mix": True, "targets": members} | changes))
    targets = tuple(target(count, key=key) for key, count in zip(MIX, replicas, strict=True))
    return Facts(policy=mix, targets=targets)


def mix_sample(loads: tuple[float | None, float | None], at_ms: int = T0) -> Sampled:
    """A sample of the mix; a target without a load (None) has no pods."""
    readings = tuple(
        TargetReading(
            target=key,
            metrics=() if load is None else (metric(load),),
            ready_pods=0 if load is None else 1,
        )
        for key, load in zip(MIX, loads, strict=True)
    )
    return Sampled(taken_at_ms=at_ms, readings=readings)


class Fleet:
    """A target under a policy: applies every decision at once, as the reconciler would."""

    def __init__(self, replicas: int, the_policy: PolicyFacts, **settings: int) -> None:
        self.policy = the_policy
        self.replicas = replicas
        self.generation = 1
        self.state = TargetState()
        self.now_ms = T0
        self.timer_ms: int | None = None
        self.decisions: list[ScalingDecided] = []
        self.settings = DeciderSettings(**settings)
        self.answers = True
        self.frozen = False
        self.frozen_until_ms: int | None = None

    def facts(self, **changes: Any) -> Facts:
        """The facts as they stand."""
        ends_ms = self.frozen_until_ms
        held = ends_ms is not None and self.now_ms < ends_ms
        the_target = {"replicas": self.replicas, "generation": self.generation} | changes
        return Facts(
            policy=self.policy,
            targets=(target(**the_target),),
            frozen=self.frozen or held,
            frozen_until_ms=ends_ms if held else None,
            decision_id=str(len(self.decisions)),
            settings=self.settings,
        )

    def sample(self, load: float | None, **changes: Any) -> int:
        """Feed one sample; the replicas afterwards."""
        self.feed(sample(load, self.now_ms, **changes))
        return self.replicas

    def feed(self, event: Event, **changes: Any) -> tuple[Effect, ...]:
        """Feed any event and carry out what follows from it."""
        self.state, effects = decide(self.state, event, self.facts(**changes), self.now_ms)
        for effect in effects:
            if isinstance(effect, Decide):
                self.decisions.append(effect.data)
        self._set_timer(effects)
        if self.answers and any(isinstance(effect, Decide) for effect in effects):
            self.answer()
        return effects

    def answer(self, outcome: ApplyOutcome = ApplyOutcome.APPLIED) -> tuple[Effect, ...]:
        """The reconciler answers the last decision."""
        decided = self.decisions[-1]
        if outcome is ApplyOutcome.APPLIED and decided.desired != self.replicas:
            self.replicas, self.generation = decided.desired, self.generation + 1
        return self.feed(
            Applied(
                target=KEY,
                decision_id=str(len(self.decisions)),
                outcome=outcome,
                replicas=self.replicas,
                generation=self.generation,
                uid="target-uid",
            )
        )

    def advance(self, step_ms: int) -> None:
        """Let time pass; timers that come due fire."""
        until_ms = self.now_ms + step_ms
        while self.timer_ms is not None and self.timer_ms <= until_ms:
            self.now_ms, self.timer_ms = self.timer_ms, None
            self.feed(Woken(due_ms=self.now_ms))
        self.now_ms = until_ms

    def run(self, loads: Sequence[float | None], step_ms: int = STEP_MS) -> list[int]:
        """One sample a step; the replicas after each."""
        seen = []
        for load in loads:
            seen.append(self.sample(load))
            self.advance(step_ms)
        return seen

    def _set_timer(self, effects: tuple[Effect, ...]) -> None:
        for effect in effects:
            if isinstance(effect, SetTimer):
                self.timer_ms = effect.at_ms
            elif not isinstance(effect, Decide | Demand):
                self.timer_ms = None
