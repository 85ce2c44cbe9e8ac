"""What may be chosen of each target: its bounds, and what of them can be scheduled.

Accelerators that were found short may be tried with one replica more, the probe. Invariant: neither
a probe nor a replica that must exist but cannot be scheduled is counted on.
"""

from collections.abc import Sequence
from fractions import Fraction

from inferbus_optimizer.events import Demand, Option
from inferbus_optimizer.policy_exact import Choice, exact


def choices_of(
    demand: Demand, current: Sequence[int], frozen: frozenset[str], *, sure: bool = False
) -> list[Choice]:
    """What may be chosen, probes included; with `sure` without them.

    A frozen target stays as it is; a minimum holds though it can't be scheduled.
    """
    return [
        _choice(option, have, is_frozen=option.target in frozen, sure=sure)
        for option, have in zip(demand.options, current, strict=True)
    ]


def needed_of(demand: Demand, current: Sequence[int], frozen: frozenset[str]) -> Fraction:
    """The demand, and what those replicas lack that must exist but cannot be scheduled."""
    needed = exact(demand.capacity)
    sure = choices_of(demand, current, frozen, sure=True)
    for option, choice in zip(demand.options, sure, strict=True):
        if option.schedulable is not None:
            needed += choice.capacity * max(0, choice.min_replicas - option.schedulable)
    return needed


def _choice(option: Option, have: int, *, is_frozen: bool, sure: bool) -> Choice:
    low, high = option.min_replicas, option.max_replicas
    if option.schedulable is not None:
        high = min(high, option.schedulable + (option.probe and not sure))
    if is_frozen:
        low = high = have
    return Choice(
        cost=option.cost,
        capacity=exact(option.capacity),
        min_replicas=low,
        max_replicas=max(low, high),
        current=have,
    )
