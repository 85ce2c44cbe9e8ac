"""The bounded covering knapsack in integers: the cheapest pieces that reach a size.

Primal-dual dynamic programming. The continuous optimum takes the groups of equal pieces by rising
cost per size, until one of them, the pivot, reaches the demand. Every other group is then changed
against that, one after the other, only as far as the lower bound of the continuous problem allows;
of several ways to one size the best is kept, and the pivot fills up what is missing. Invariant:
nothing is dropped that could be part of the answer, unless the work exceeds a limit, and then the
answer says so.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby
from typing import NamedTuple

MOST_STEPS = 100_000
"""Steps of a run, about half a second; only sizes made to be hard come near it."""

_NARROW = 32
"""Ways that the first run follows: its answer makes the bound of the full run tight."""


@dataclass(frozen=True, kw_only=True)
class Item:
    """Up to `count` equal pieces that belong to one owner."""

    owner: int
    """Index of the target they belong to; a lower one is preferred."""
    size: int
    """Above 0."""
    cost: int
    """0 or more."""
    count: int


@dataclass(frozen=True)
class Cover:
    """Pieces per owner."""

    pieces: tuple[int, ...]
    proven: bool
    """False where the work was cut off: the pieces reach the demand, but may not be cheapest."""


class _Group(NamedTuple):
    """All pieces of one size and cost, whoever owns them."""

    size: int
    cost: int
    """Cost and number of pieces in one integer: cheaper first, then fewer."""
    pieces: int
    members: tuple[tuple[int, int], ...]
    """(owner, count) by owner: pieces are taken in this order."""


class _Way(NamedTuple):
    """A choice from the groups looked at so far; all others stand as in the continuous optimum."""

    size: int
    cost: int
    before: "_Way | None"
    group: int
    changed: int
    """Pieces that the group was changed by."""


def cover(items: Sequence[Item], demand: int, owners: int) -> Cover | None:
    """The best pieces whose sizes reach `demand` (above 0); None when all together don't.

    Best is cheapest, then fewest, then largest, then most of the lowest owner, and so on.
    """
    if sum(item.size * item.count for item in items) < demand:
        return None
    step = math.gcd(*(item.size for item in items))
    return _Search(_groups(items, step), -(-demand // step), owners).solve()


def _groups(items: Iterable[Item], step: int) -> list[_Group]:
    """Groups by rising cost per size; the larger first where that is equal."""
    items = [item for item in items if item.count > 0]
    weight = sum(item.count for item in items) + 1

    def kind(item: Item) -> tuple[int, int]:
        return item.size // step, item.cost * weight + 1

    made = []
    for (size, cost), equal in groupby(sorted(items, key=lambda i: (*kind(i), i.owner)), key=kind):
        members = tuple((item.owner, item.count) for item in equal)
        made.append(_Group(size, cost, sum(count for _, count in members), members))
    return sorted(made, key=lambda group: (Fraction(group.cost, group.size), -group.size))


class _Search:
    """Both runs over the groups; `best` is the best complete way, with the pivot's pieces."""

    def __init__(self, groups: Sequence[_Group], demand: int, owners: int) -> None:
        self.groups = groups
        self.demand = demand
        self.owners = owners
        self.proven = True
        self.steps = 0
        size = cost = pivot = 0
        while size + groups[pivot].size * groups[pivot].pieces < demand:
            size += groups[pivot].size * groups[pivot].pieces
            cost += groups[pivot].cost * groups[pivot].pieces
            pivot += 1
        self.pivot = pivot
        self.root = _Way(size, cost, None, pivot, 0)
        self.best = (self.root, self._missing(self.root))

    def solve(self) -> Cover:
        """The best way, found narrowly first and then in full."""
        self._run(_NARROW)
        self.proven, self.steps = True, 0
        self._run(None)
        return Cover(self._pieces(*self.best), self.proven)

    def _run(self, width: int | None) -> None:
        """Change one group after the other, the most expensive to change first."""
        others = [index for index in range(len(self.groups)) if index != self.pivot]
        ways = [self.root]
        for index in sorted(others, key=self._slope, reverse=True):
            ways = self._undominated(self._changed(ways, index))
            if width is not None and len(ways) > width:
                ways = sorted(ways, key=self._bound)[:width]

    def _slope(self, index: int) -> int:
        """How fast the lower bound grows with each changed piece of a group; 0 or more."""
        pivot, group = self.groups[self.pivot], self.groups[index]
        return abs(group.cost * pivot.size - pivot.cost * group.size)

    def _bound(self, way: _Way) -> int:
        """What completing a way costs at least, times the pivot's size."""
        pivot = self.groups[self.pivot]
        return way.cost * pivot.size + pivot.cost * (self.demand - way.size)

    def _changed(self, ways: Sequence[_Way], index: int) -> dict[int, _Way]:
        """The best way to each size after any change of one group that may still pay."""
        group, slope = self.groups[index], self._slope(index)
        sign = 1 if index > self.pivot else -1
        size_step, cost_step = sign * group.size, sign * group.cost
        limit = self._cost(*self.best) * self.groups[self.pivot].size
        found: dict[int, _Way] = {}
        for way in sorted(ways, key=self._bound):
            room = limit - self._bound(way)
            if room < 0:
                break
            most = min(group.pieces, room // slope) if slope else group.pieces
            if self.steps + most >= MOST_STEPS:
                self.proven = False
                break
            self.steps += most + 1
            size, cost = way.size, way.cost
            for changed in range(most + 1):
                known = found.get(size)
                if known is None or cost <= known.cost:
                    new = _Way(size, cost, way, index, changed)
                    if known is None or cost < known.cost or self._preferred(new, known):
                        found[size] = new
                size += size_step
                cost += cost_step
        return found

    def _undominated(self, found: dict[int, _Way]) -> list[_Way]:
        """Ways that no larger one undercuts; each is completed on the way, for a better bound."""
        kept: list[_Way] = []
        for size in sorted(found, reverse=True):
            way = found[size]
            if not kept or way.cost < kept[-1].cost:
                kept.append(way)
                self._offer(way)
        return kept

    def _missing(self, way: _Way) -> int:
        """Pieces of the pivot that a way needs to reach the demand."""
        return max(0, -((way.size - self.demand) // self.groups[self.pivot].size))

    def _cost(self, way: _Way, filled: int) -> int:
        return way.cost + filled * self.groups[self.pivot].cost

    def _offer(self, way: _Way) -> None:
        """Take a way as the best if it can be completed and is."""
        filled = self._missing(way)
        if filled > self.groups[self.pivot].pieces:
            return
        cost, least = self._cost(way, filled), self._cost(*self.best)
        if cost < least or (cost == least and self._rank(way, filled) > self._rank(*self.best)):
            self.best = (way, filled)

    def _rank(self, way: _Way, filled: int) -> tuple[int, tuple[int, ...]]:
        """Greater is better among ways of equal cost."""
        size = way.size + filled * self.groups[self.pivot].size
        return size, self._pieces(way, filled)

    def _preferred(self, one: _Way, other: _Way) -> bool:
        """Whether `one` is better than `other`, which has the same size and cost."""
        return self._pieces(one, 0) > self._pieces(other, 0)

    def _pieces(self, way: _Way, filled: int) -> tuple[int, ...]:
        """Pieces per owner of a way and so many of the pivot."""
        taken = [group.pieces if i < self.pivot else 0 for i, group in enumerate(self.groups)]
        taken[self.pivot] = filled
        step: _Way | None = way
        while step is not None and step.before is not None:
            taken[step.group] += step.changed if step.group > self.pivot else -step.changed
            step = step.before
        owned = [0] * self.owners
        for group, count in zip(self.groups, taken, strict=True):
            for owner, most in group.members:
                part = min(count, most)
                owned[owner] += part
                count -= part
        return tuple(owned)
