"""What the optimizer hears, reduced to what its rules read.

Invariant: an event is plain finite JSON data of bounded size, so that a decision record can embed
it whole.
"""

from dataclasses import dataclass

from inferbus_contracts.deciding import Applied, Origin, Woken
from inferbus_contracts.events.scaling import ScalingDemanded, TargetOption


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
    probe: bool = False
    """Whether one more than `schedulable` may be tried."""
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
        probe=bool(option.probe),
        startup_ms=option.startup_ms,
    )
