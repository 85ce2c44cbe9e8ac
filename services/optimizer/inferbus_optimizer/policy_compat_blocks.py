"""The order in which upstream fills a mix (autoscaling spec 3.2 to 3.4): the compat allocation.

It counts every replica of every target as one and knows no capacity; the decider's own rule is
`policy_exact`. Invariant: the allocation depends on the total alone, and a larger total never takes
a replica from any target.
"""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class MixTarget:
    """One target of the mix, in the policy's order."""

    name: str
    cost: int
    """Cost of one replica, 0 or more."""
    min_replicas: int
    max_replicas: int


@dataclass(frozen=True)
class Block:
    """Replicas of one target that are added, or taken away, together."""

    target: int
    """Index of the target."""
    replicas: int
    sort_cost: int


def blocks(targets: Sequence[MixTarget], expansion_rate_percent: int) -> tuple[Block, ...]:
    """Everything above the minima, in the order of filling.

    A rate of 100 makes one block a target; otherwise blocks grow by the rate, and the last one of
    a target is what remains.
    """
    made = [
        block
        for index, target in enumerate(targets)
        for block in _target_blocks(index, target, expansion_rate_percent)
    ]
    return tuple(sorted(made, key=lambda block: (block.sort_cost, block.target)))


def allocate(targets: Sequence[MixTarget], order: Sequence[Block], total: int) -> tuple[int, ...]:
    """Replicas of each target for a total, which is clamped to the sums of the bounds first."""
    least = sum(target.min_replicas for target in targets)
    most = sum(target.max_replicas for target in targets)
    rest = min(max(total, least), most) - least
    replicas = [target.min_replicas for target in targets]
    for block in order:
        taken = min(rest, block.replicas)
        replicas[block.target] += taken
        rest -= taken
        if rest <= 0:
            break
    return tuple(replicas)


def _target_blocks(index: int, target: MixTarget, rate_percent: int) -> list[Block]:
    rest = target.max_replicas - target.min_replicas
    if rest <= 0:
        return []
    if rate_percent == 100:
        return [Block(index, rest, target.cost)]
    made, length = [], 1.0
    while rest > 0:
        size = min(rest, max(int(length), 1))
        made.append(Block(index, size, target.cost * size))
        rest -= size
        length = length * rate_percent / 100
    return made
