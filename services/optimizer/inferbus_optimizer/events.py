"""What the optimizer hears, reduced to what its rules read.

Invariant: an event is plain finite JSON data of bounded size, so that a decision record can embed
it whole.
"""

from dataclasses import dataclass

from inferbus_contracts.events.scaling import (
    ApplyOutcome,
    ScalingApplied,
    ScalingDemanded,
    TargetOption,
)
from inferbus_contracts.events.scaling import Woken as WokenData


@dataclass(frozen=True, kw_only=True)
class Origin:
    """Where an event stands in the log; copied into the record of what follows from it."""

    sequence: int = 0
    """Sequence in the decider's inbox."""
    causes: tuple[str, ...] = ()
    """Ids of the events that led here, the direct one first."""


@dataclass(frozen=True, kw_only=True)
class Option:
    """One target of the mix as the autoscaler saw it."""

    target: str
    uid: str
    generation: int
    current: int
    min_replicas: int
    max_replicas: int
    cost: int
    capacity: float = 1.0
    schedulable: int | None = None
    startup_ms: int = 0


@dataclass(frozen=True, kw_only=True)
class Demand:
    """What a mix must serve."""

    capacity: float
    """Capacity units."""
    replicas: int
    """The same in replicas of capacity 1; what upstream's block order counts in."""
    rate_percent: int = 200
    apply: str = "auto"
    options: tuple[Option, ...]


@dataclass(frozen=True, kw_only=True)
class Demanded(Origin):
    """The autoscaler's total for the mix."""

    demand: Demand


@dataclass(frozen=True, kw_only=True)
class Applied(Origin):
    """The reconciler's answer about one target of the mix."""

    target: str
    decision_id: str
    outcome: ApplyOutcome
    replicas: int
    generation: int
    uid: str


@dataclass(frozen=True, kw_only=True)
class Woken(Origin):
    """A timer of the decider fired."""

    due_ms: int


Event = Demanded | Applied | Woken


def demanded(data: ScalingDemanded, origin: Origin) -> Demanded:
    """The event of a `scaling.demanded` body."""
    return Demanded(
        sequence=origin.sequence,
        causes=origin.causes,
        demand=Demand(
            capacity=data.capacity,
            replicas=data.replicas,
            rate_percent=data.cost_expansion_rate_percent,
            apply=data.apply,
            options=tuple(_option(option) for option in data.targets),
        ),
    )


def applied(target: str, data: ScalingApplied, origin: Origin) -> Applied:
    """The event of a `scaling.applied` body that was keyed by `target`."""
    return Applied(
        sequence=origin.sequence,
        causes=origin.causes,
        target=target,
        decision_id=data.decision_id,
        outcome=data.outcome,
        replicas=data.replicas,
        generation=data.generation,
        uid=data.uid,
    )


def woken(data: WokenData, origin: Origin) -> Woken:
    """The event of a fired timer."""
    return Woken(sequence=origin.sequence, causes=origin.causes, due_ms=data.due_ms)


def _option(option: TargetOption) -> Option:
    return Option(
        target=option.target,
        uid=option.uid,
        generation=option.generation,
        current=option.current,
        min_replicas=option.min_replicas,
        max_replicas=option.max_replicas,
        cost=option.cost,
        capacity=option.capacity,
        schedulable=option.schedulable,
        startup_ms=option.startup_ms,
    )
