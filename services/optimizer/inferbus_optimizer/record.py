"""The record of an allocation: why this mix, and all that is needed to compute it again.

Invariant: a record's input is the core's whole input as JSON, so that `core.recompute` gives the
same bytes from it alone.
"""

import math
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter

from inferbus_contracts.canonical import digest
from inferbus_contracts.deciding import Applied, Woken, foreign_input
from inferbus_contracts.events.scaling import DecisionRecord, MetricReading
from inferbus_optimizer.events import Demand, Demanded, Event
from inferbus_optimizer.facts import Facts, PolicyFacts
from inferbus_optimizer.policy_placement import Placement
from inferbus_optimizer.state import MixState

DECIDER = "optimizer"

VERSION = "2"
"""Of the rules: the same version gives the same bytes for the same input."""


@dataclass(frozen=True, kw_only=True)
class CoreInput:
    """Everything `core.decide` is called with."""

    state: MixState
    event: Event
    facts: Facts
    now_ms: int

    def to_dict(self) -> dict[str, Any]:
        """The JSON data model; the event stands under the name of its kind."""
        wire = _WireInput(
            facts=self.facts,
            now_ms=self.now_ms,
            demanded=self.event if isinstance(self.event, Demanded) else None,
            applied=self.event if isinstance(self.event, Applied) else None,
            woken=self.event if isinstance(self.event, Woken) else None,
        )
        fields = _INPUTS.dump_python(wire, mode="json", exclude_defaults=True)
        return {**fields, "state": self.state.to_dict()}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "CoreInput":
        """The inverse of `to_dict`; raises `ProblemsError` when `data` is no such input."""
        try:
            wire = _INPUTS.validate_python(data)
            state = MixState.from_dict(data["state"])
            event = wire.demanded or wire.applied or wire.woken
            if event is None:
                raise KeyError("event")
        except (ValueError, KeyError) as error:
            raise foreign_input(error) from error
        return cls(state=state, event=event, facts=wire.facts, now_ms=wire.now_ms)


@dataclass(frozen=True, kw_only=True)
class _WireInput:
    facts: Facts
    now_ms: int
    demanded: Demanded | None = None
    applied: Applied | None = None
    woken: Woken | None = None


_INPUTS = TypeAdapter(_WireInput)


def record_of(
    given: CoreInput, policy: PolicyFacts, demand: Demand, found: Placement, after: MixState
) -> DecisionRecord:
    """The record of `found`; `after` is the state that is stored with it."""
    core_input = given.to_dict()
    capacity = MetricReading(
        name="capacity",
        value=demand.capacity,
        target=1.0,
        want=math.ceil(demand.capacity),
        detail=f"cost {found.cost}, at least {found.optimal_cost}",
    )
    return DecisionRecord(
        decider=DECIDER,
        version=VERSION,
        policy=policy.key,
        policy_digest=policy.digest,
        input=core_input,
        inbox_sequence=given.event.sequence,
        state_before=digest(core_input["state"]),
        state_after=after.digest(),
        metrics=[capacity],
        limiters=list(found.steps),
        binding=found.binding,
        causes=list(given.event.causes),
    )
