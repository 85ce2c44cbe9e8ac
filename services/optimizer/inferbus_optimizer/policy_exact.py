"""The cheapest mix that serves a demand, exactly.

Minimise the cost of all replicas, plus what starting the new ones costs, so that their capacities
add up to the demand and every target stays inside its bounds (autoscaling spec 7.1 "Placement").
Invariants: what is sufficient is so in integers; and the answer is unique wherever the own search
comes to its end, which only sizes made to be hard prevent (ADR 0020): of mixes of the same cost the
one with the fewest replicas, then the one with the most capacity, then the lexicographically
greatest, i.e. the one that prefers targets listed first.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from inferbus_optimizer.policy_covering import Item, cover
from inferbus_optimizer.policy_highs import settled


@dataclass(frozen=True, kw_only=True)
class Choice:
    """One target to choose replicas of."""

    cost: int
    """Of one replica, 0 or more."""
    capacity: Fraction
    """Of one replica, above 0, in the unit of the demand."""
    min_replicas: int
    max_replicas: int
    """At least `min_replicas`."""
    current: int = 0
    starting_cost: int = 0
    """Once for every replica above `current`, 0 or more, in the unit of `cost`."""

    @property
    def kept(self) -> int:
        """How many of the replicas above the minimum needn't be started."""
        return min(max(self.current, self.min_replicas), self.max_replicas) - self.min_replicas

    @property
    def addable(self) -> int:
        """How many replicas there may be above the minimum."""
        return self.max_replicas - self.min_replicas


def exact(number: float) -> Fraction:
    """The number as it is written: 0.1 is one tenth, not the float64 next to it."""
    return Fraction(repr(float(number)))


def serves(choices: Sequence[Choice], replicas: Sequence[int], demand: Fraction) -> bool:
    """Whether the replicas carry the demand."""
    return capacity_of(choices, replicas) >= demand


def capacity_of(choices: Sequence[Choice], replicas: Sequence[int]) -> Fraction:
    """What the replicas carry together."""
    pairs = zip(choices, replicas, strict=True)
    return sum((choice.capacity * count for choice, count in pairs), Fraction())


def running_cost(choices: Sequence[Choice], replicas: Sequence[int]) -> int:
    """The cost of the replicas, without that of starting them."""
    return sum(choice.cost * count for choice, count in zip(choices, replicas, strict=True))


@dataclass(frozen=True)
class Mix:
    """Replicas per target, in the order of the choices."""

    replicas: tuple[int, ...]
    proven: bool = True
    """False where a cheaper mix can't be ruled out: neither `policy_covering` nor `policy_highs`
    came to the end of its search."""


def cheapest(choices: Sequence[Choice], demand: Fraction) -> Mix | None:
    """The best mix that serves `demand`; None when even all replicas together don't."""
    least = tuple(choice.min_replicas for choice in choices)
    missing = demand - capacity_of(choices, least)
    if missing <= 0:
        return Mix(least)
    unit = math.lcm(missing.denominator, *(choice.capacity.denominator for choice in choices))
    items = [item for index, choice in enumerate(choices) for item in _items(index, choice, unit)]
    size = int(missing * unit)
    added = cover(items, size, len(choices))
    if added is None:
        return None
    if not added.proven:
        added = settled(items, size, added)
    replicas = tuple(low + more for low, more in zip(least, added.pieces, strict=True))
    return Mix(replicas, added.proven)


def _items(index: int, choice: Choice, unit: int) -> list[Item]:
    """What may be added to the minimum: first what runs already, then what must be started."""
    capacity = int(choice.capacity * unit)
    new = choice.addable - choice.kept
    return [
        Item(owner=index, size=capacity, cost=cost, count=count)
        for cost, count in (
            (choice.cost, choice.kept),
            (choice.cost + choice.starting_cost, new),
        )
        if count > 0
    ]
