"""Replicas that could be spared, added up over time: what a change of direction has to be worth.

Going down is a bet that the replicas aren't needed again soon. It is made once what they have cost
since they could be spared reaches a price: a ski rental, as for the mixes of the optimizer.
Invariant: while the same number can be spared nothing of it changes.
"""

import math
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Surplus:
    """In replicas times milliseconds."""

    accrued: int = 0
    spare: int = 0
    """Replicas that can be spared."""
    since_ms: int = 0
    """When that many could be."""

    def at(self, now_ms: int) -> int:
        """All that was added up until `now_ms`."""
        return self.accrued + self.spare * max(0, now_ms - self.since_ms)

    def going_on(self, spare: int, now_ms: int) -> "Surplus":
        """The surplus when `spare` replicas can be spared from now on; none begins anew."""
        if spare <= 0:
            return self if self == NO_SURPLUS else NO_SURPLUS
        if spare == self.spare:
            return self
        return Surplus(accrued=self.at(now_ms), spare=spare, since_ms=now_ms)


NO_SURPLUS = Surplus()

_PRICE = 0.9


def price(replicas: int, hold_ms: int) -> int:
    """What going down has to be worth, in replicas times milliseconds.

    The need of a fleet scatters by about the square root of its size: so many spare replicas have
    to be there for nearly the time that a need is remembered anyway.
    """
    return round(_PRICE * math.sqrt(max(replicas, 1)) * hold_ms)
