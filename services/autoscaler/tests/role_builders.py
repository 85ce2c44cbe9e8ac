"""Two roles under one policy, and a reconciler that carries out what is decided about them."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from inferbus_autoscaler.core import decide
from inferbus_autoscaler.events import Event, Sampled, TargetReading
from inferbus_autoscaler.facts import (
    DeciderSettings,
    Facts,
    PolicyFacts,
    PolicyTarget,
    RatioFacts,
    TargetFacts,
)
from inferbus_autoscaler.outcomes import Decide, Effect
from inferbus_autoscaler.state import TargetState
from inferbus_contracts.deciding import Applied, SetTimer, Woken
from inferbus_contracts.events.scaling import ApplyOutcome, ScalingDecided
from services.autoscaler.tests.builders import STEP_MS, T0, metric, policy

DECODE, PREFILL = "ModelServing/default/llm/decode", "ModelServing/default/llm/prefill"
ROLES = (DECODE, PREFILL)

Pair = tuple[int, int]
"""Of prefill and decode: the order in which ratios are told."""

Loads = tuple[float | None, float | None]


def pair_policy(
    prefill: Pair = (0, 8),
    decode: Pair = (0, 16),
    ratio: tuple[str, str] | None = ("0.25", "1"),
    **changes: Any,
) -> PolicyFacts:
    """Bounds of both roles, load target 1, no tolerance, no limits; prefill is the numerator."""
    bounds = {DECODE: decode, PREFILL: prefill}
    own: dict[str, Any] = changes.pop("own", {})
    targets = tuple(
        PolicyTarget(
            key=key, min_replicas=bounds[key][0], max_replicas=bounds[key][1], metrics=own.get(key)
        )
        for key in ROLES
    )
    facts = ratio and RatioFacts(
        numerator=PREFILL, denominator=DECODE, least=ratio[0], most=ratio[1]
    )
    given = {"metrics": {"load": 1.0}, "tolerance_percent": 0} | changes
    return policy(targets=targets, joint=True, ratio=facts, **given)


def reading(key: str, load: float | None, **changes: Any) -> TargetReading:
    """One role's part of a sample; None: no pod gave a value."""
    values = () if load is None else (metric(float(load)),)
    return TargetReading(target=key, metrics=values, **({"ready_pods": 1} | changes))


class RoleFleet:
    """Two roles of one object: applies every decision, each as one more generation of it."""

    def __init__(self, replicas: Pair, the_policy: PolicyFacts, **settings: int) -> None:
        self.policy = the_policy
        self.replicas = {PREFILL: replicas[0], DECODE: replicas[1]}
        self.generation = 1
        self.state = TargetState()
        self.now_ms = T0
        self.timer_ms: int | None = None
        self.decisions: list[tuple[str, ScalingDecided]] = []
        self.ids: dict[str, str] = {}
        self.settings = DeciderSettings(**settings)
        self.answers = True
        self.frozen = False
        self.frozen_until_ms: int | None = None
        self.groups = 1

    @property
    def pair(self) -> Pair:
        """Replicas of prefill and decode."""
        return self.replicas[PREFILL], self.replicas[DECODE]

    def facts(self) -> Facts:
        """The facts as they stand."""
        held = self.frozen_until_ms is not None and self.now_ms < self.frozen_until_ms
        targets = tuple(
            TargetFacts(
                key=key,
                uid="uid",
                generation=self.generation,
                replicas=self.replicas[key],
                ready=self.replicas[key] * self.groups,
                groups=self.groups,
            )
            for key in ROLES
        )
        return Facts(
            policy=self.policy,
            targets=targets,
            frozen=self.frozen or held,
            frozen_until_ms=self.frozen_until_ms if held else None,
            decision_ids=dict(self.ids),
            settings=self.settings,
        )

    def sample(self, prefill: float | None, decode: float | None, **changes: Any) -> Pair:
        """Feed one sample; `changes` are of the decode role's part. The pair afterwards."""
        readings = (reading(DECODE, decode, **changes), reading(PREFILL, prefill))
        self.feed(Sampled(taken_at_ms=self.now_ms, readings=readings))
        return self.pair

    def feed(self, event: Event) -> tuple[Effect, ...]:
        """Feed any event, and carry out what follows from it."""
        self.state, effects = decide(self.state, event, self.facts(), self.now_ms)
        said = [effect for effect in effects if isinstance(effect, Decide)]
        for effect in said:
            self.decisions.append((effect.target, effect.data))
            self.ids[effect.target] = str(len(self.decisions))
        for effect in effects:
            if not isinstance(effect, Decide):
                self.timer_ms = effect.at_ms if isinstance(effect, SetTimer) else None
        if self.answers:
            for effect in said:
                self.answer(effect.target, effect.data)
        return effects

    def answer(
        self,
        key: str,
        decided: ScalingDecided,
        outcome: ApplyOutcome = ApplyOutcome.APPLIED,
    ) -> tuple[Effect, ...]:
        """The reconciler answers the last decision about a role."""
        if outcome is ApplyOutcome.APPLIED and decided.desired != self.replicas[key]:
            self.replicas[key] = decided.desired
            self.generation += 1
        return self.feed(
            Applied(
                target=key,
                decision_id=self.ids[key],
                outcome=outcome,
                replicas=self.replicas[key],
                generation=self.generation,
                uid="uid",
            )
        )

    def advance(self, step_ms: int = STEP_MS) -> None:
        """Let time pass; timers that come due fire."""
        until_ms = self.now_ms + step_ms
        while self.timer_ms is not None and self.timer_ms <= until_ms:
            self.now_ms, self.timer_ms = self.timer_ms, None
            self.feed(Woken(due_ms=self.now_ms))
        self.now_ms = until_ms

    def run(self, loads: Sequence[Loads]) -> list[Pair]:
        """One sample a step; the pair after each."""
        seen = []
        for prefill, decode in loads:
            seen.append(self.sample(prefill, decode))
            self.advance()
        return seen

    def last(self, key: str) -> ScalingDecided:
        """The last decision about a role."""
        return next(data for about, data in reversed(self.decisions) if about == key)

    def under(self, **changes: Any) -> "RoleFleet":
        """The fleet under a changed policy."""
        self.policy = replace(self.policy, **changes)
        return self
