"""When a dearer mix that runs is given up for the cheapest one: a ski rental.

`costExpansionRatePercent` says what stability may cost (RULINGS): a mix is kept until the extra
cost it has run up over the optimum reaches that percentage of the cost of switching, i.e. of what
the replicas to start cost while they start. Invariant: the extra cost of one detour never exceeds
that share, whatever the demand does; a mix that is optimal owes nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Regret:
    """Extra cost run up so far, in cost times milliseconds."""

    accrued: int = 0
    extra: int = 0
    """Cost of the mix in force above the optimum, per unit of time."""
    since_ms: int = 0
    """When `extra` came into force."""

    def at(self, now_ms: int) -> int:
        """All that was run up until `now_ms`."""
        return self.accrued + self.extra * max(0, now_ms - self.since_ms)

    def going_on(self, extra: int, now_ms: int) -> "Regret":
        """The regret with another extra cost from `now_ms` on; itself where that is the same."""
        if extra == 0:
            return Regret() if self.extra or self.accrued else self
        if extra == self.extra:
            return self
        return Regret(accrued=self.at(now_ms), extra=extra, since_ms=now_ms)


@dataclass(frozen=True, kw_only=True)
class Bargain:
    """What keeping costs, and what switching would."""

    extra: int
    """Cost of the kept mix above the optimum, per unit of time; 0 or more."""
    switching: int
    """Cost of starting what the optimum needs beyond the kept mix, cost times milliseconds."""
    rate_percent: int

    def pays(self, regret: Regret, now_ms: int) -> bool:
        """Whether switching at `now_ms` is due."""
        return regret.at(now_ms) * 100 >= self.rate_percent * self.switching

    def due_ms(self, regret: Regret, now_ms: int) -> int | None:
        """When it will be due if nothing changes; None: never."""
        if self.extra <= 0:
            return None
        lacking = self.rate_percent * self.switching - regret.at(now_ms) * 100
        return now_ms + max(0, -(-lacking // (self.extra * 100)))


def starting_cost(unit_costs: Sequence[int], current: Sequence[int], wanted: Sequence[int]) -> int:
    """What starting the replicas above `current` costs; `unit_costs` is that of one replica."""
    triples = zip(unit_costs, current, wanted, strict=True)
    return sum(cost * max(0, want - have) for cost, have, want in triples)
