"""The covering knapsack once more, by a general solver: HiGHS, where the search was cut off.

Sizes that are made to be hard, and nothing else, exceed `policy_covering.MOST_STEPS`. HiGHS
branches and cuts in float64, within a number of nodes and never within a time, so that the same
input gives the same answer (Huangfu and Hall 2018, doi:10.1007/s12532-017-0130-5). Invariant: its
answer counts only after it was checked in integers, and only where it is no worse than the one at
hand; it is proven only where float64 holds every number of the problem exactly.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from inferbus_optimizer.policy_covering import Cover, Item

MOST_NODES = 1_000
"""Of the search tree, some tenths of a second."""

_EXACT = 10**12
"""Sums up to here are whole numbers in float64, with room for a solver's tolerances of 1e-6."""

_OPTIMAL = 0
"""`scipy.optimize.milp`: solved to optimality."""


def settled(items: Sequence[Item], demand: int, cut_off: Cover) -> Cover:
    """The better of `cut_off` and what HiGHS finds; both reach `demand`.

    Better is cheaper, then of fewer pieces, then larger, then of more of the lowest owner. What
    HiGHS proves is the cost: it may know another way as cheap with fewer pieces.
    """
    items = [item for item in items if item.count > 0]
    most = [item.count for item in items]
    divisor = math.gcd(*(item.cost for item in items)) or 1
    costs = [item.cost // divisor for item in items]
    step = math.gcd(*(item.size for item in items))
    sizes = [item.size // step for item in items]
    counts, optimal = _solved(costs, sizes, most, -(-demand // step))
    if counts is None:
        return cut_off
    owned = [0] * len(cut_off.pieces)
    for item, count in zip(items, counts, strict=True):
        owned[item.owner] += count
    if _size(items, owned) < demand:
        return cut_off
    proven = optimal and max(_sum(costs, most), _sum(sizes, most)) <= _EXACT
    return max(Cover(tuple(owned), proven), replace(cut_off, proven=proven), key=_ranked(items))


def _solved(
    costs: Sequence[int], sizes: Sequence[int], most: Sequence[int], demand: int
) -> tuple[list[int] | None, bool]:
    """Pieces of each item, and whether the solver calls them optimal; None: it found none."""
    # Only a problem that is hard pays for them: 60 MB, and some tenths of a second.
    import numpy as np
    from scipy.optimize import (  # type: ignore[import-untyped]
        Bounds,
        LinearConstraint,
        milp,
    )

    largest = max(sizes) if max(sizes) * sum(most) > _EXACT else 1
    answer = milp(
        c=np.array([float(cost) for cost in costs]),
        integrality=np.ones(len(costs)),
        bounds=Bounds(0, np.array([float(count) for count in most])),
        constraints=LinearConstraint(
            np.array([[size / largest for size in sizes]]), lb=demand / largest
        ),
        options={"mip_rel_gap": 0.0, "node_limit": MOST_NODES},
    )
    if answer.x is None:
        return None, False
    pairs = zip(answer.x, most, strict=True)
    return [min(max(round(value), 0), count) for value, count in pairs], answer.status == _OPTIMAL


def _sum(numbers: Sequence[int], counts: Sequence[int]) -> int:
    return sum(number * count for number, count in zip(numbers, counts, strict=True))


def _size(items: Sequence[Item], pieces: Sequence[int]) -> int:
    sizes = {item.owner: item.size for item in items}
    return sum(sizes[owner] * count for owner, count in enumerate(pieces) if count)


def _ranked(items: Sequence[Item]) -> Callable[[Cover], tuple[int, int, int, tuple[int, ...]]]:
    """Greater is better."""
    by_cost = sorted(items, key=lambda item: item.cost)

    def rank(found: Cover) -> tuple[int, int, int, tuple[int, ...]]:
        cost, left = 0, list(found.pieces)
        for item in by_cost:
            taken = min(left[item.owner], item.count)
            left[item.owner] -= taken
            cost += taken * item.cost
        return -cost, -sum(found.pieces), _size(items, found.pieces), found.pieces

    return rank
