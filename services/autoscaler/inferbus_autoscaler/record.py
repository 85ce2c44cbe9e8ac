"""The record of a decision: why a number was chosen, and all that is needed to compute it again.

Invariant: a record's input is the core's whole input as JSON, so that `core.recompute` gives the
same bytes from it alone; it is written from what was parsed, and parses to what was used.
"""

from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter

from inferbus_autoscaler.evaluation import Evaluation
from inferbus_autoscaler.events import Demanded, Event, Sampled
from inferbus_autoscaler.facts import Facts, PolicyFacts
from inferbus_autoscaler.policy_limits import binding
from inferbus_autoscaler.state import TargetState
from inferbus_contracts.canonical import digest
from inferbus_contracts.deciding import Applied, Woken, foreign_input
from inferbus_contracts.events.scaling import DecisionRecord, MetricReading

DECIDER = "autoscaler"

VERSION = "2"
"""Of the rules: the same version gives the same bytes for the same input."""


@dataclass(frozen=True, kw_only=True)
class CoreInput:
    """Everything `core.decide` is called with."""

    state: TargetState
    event: Event
    facts: Facts
    now_ms: int

    def to_dict(self) -> dict[str, Any]:
        """The JSON data model; the event stands under the name of its kind."""
        wire = _WireInput(
            facts=self.facts,
            now_ms=self.now_ms,
            sampled=self.event if isinstance(self.event, Sampled) else None,
            applied=self.event if isinstance(self.event, Applied) else None,
            woken=self.event if isinstance(self.event, Woken) else None,
            demanded=self.event if isinstance(self.event, Demanded) else None,
        )
        fields = _INPUTS.dump_python(wire, mode="json", exclude_defaults=True)
        return {**fields, "state": self.state.to_dict()}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "CoreInput":
        """The inverse of `to_dict`; raises `ProblemsError` when `data` is no such input."""
        try:
            wire = _INPUTS.validate_python(data)
            state = TargetState.from_dict(data["state"])
        except (ValueError, KeyError) as error:
            raise foreign_input(error) from error
        event = wire.sampled or wire.applied or wire.woken or wire.demanded or Demanded()
        return cls(state=state, event=event, facts=wire.facts, now_ms=wire.now_ms)


@dataclass(frozen=True, kw_only=True)
class _WireInput:
    facts: Facts
    now_ms: int
    sampled: Sampled | None = None
    applied: Applied | None = None
    woken: Woken | None = None
    demanded: Demanded | None = None


_INPUTS = TypeAdapter(_WireInput)


def record_of(
    given: CoreInput,
    policy: PolicyFacts,
    found: Evaluation,
    after: TargetState,
    target: str | None = None,
) -> DecisionRecord:
    """The record of what was decided from `given`; `after` is the state that is stored with it.

    `target` tells it from the other decisions that the same input led to.
    """
    core_input = given.to_dict()
    return DecisionRecord(
        decider=DECIDER,
        version=VERSION,
        policy=policy.key,
        policy_digest=policy.digest,
        target=target,
        input=core_input,
        inbox_sequence=given.event.sequence,
        state_before=digest(core_input["state"]),
        state_after=after.digest(),
        metrics=_metric_readings(policy, found),
        limiters=list(found.steps),
        binding=binding(found.steps),
        causes=list(given.event.causes),
    )


def _metric_readings(policy: PolicyFacts, found: Evaluation) -> list[MetricReading]:
    targets = {metric.name: metric.target for metric in policy.metrics}
    return [
        MetricReading(
            name=metric.name,
            value=metric.load,
            target=targets.get(metric.name, 0.0) if metric.target is None else metric.target,
            want=metric.want,
            detail=metric.detail,
        )
        for metric in found.metrics
        if metric.name in targets or metric.target is not None
    ]
