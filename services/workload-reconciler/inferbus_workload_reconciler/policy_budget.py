"""Counts and shares: how many may be unavailable, surge, or stay behind during an update.

Invariant: an update can always go on: where neither unavailability nor surge is left after
rounding, one unavailable unit is allowed (defect MS_D24).
"""

import sys
from dataclasses import dataclass

from inferbus_workload_reconciler.workload import IntOrPercent, RolloutType, WorkloadSpec


@dataclass(frozen=True, slots=True)
class Limits:
    """The knobs of a rollout of groups, as counts."""

    wanted: int
    partition: int
    max_unavailable: int
    max_surge: int
    paused: bool = False

    @property
    def held_below(self) -> int:
        """Groups with an ordinal below it keep their revision: all while paused (MS_D42)."""
        return sys.maxsize if self.paused else self.partition


def rollout_limits(workload: WorkloadSpec) -> Limits:
    """Resolve the knobs against the groups wanted now.

    With RoleRollingUpdate none of them applies; each role has its own.
    """
    rollout, wanted = workload.rollout, workload.replicas
    by_group = rollout.type is RolloutType.GROUP
    surge = resolve(rollout.max_surge, wanted, round_up=True) if by_group else 0
    return Limits(
        wanted=wanted,
        partition=resolve(rollout.partition, wanted, round_up=True) if by_group else 0,
        max_unavailable=unavailable_limit(rollout.max_unavailable, wanted, surge),
        max_surge=surge,
        paused=workload.paused,
    )


def resolve(value: IntOrPercent | None, total: int, *, round_up: bool) -> int:
    """A count or percentage of `total` as a count, at least 0; None is 0.

    Partitions and surge round up, unavailability rounds down (modelserving spec 1.1, 3.7).
    """
    if value is None:
        return 0
    if isinstance(value, int):
        return max(0, value)
    if not value.endswith("%"):
        return max(0, int(value))
    hundredths = int(value.removesuffix("%")) * total
    return max(0, -(-hundredths // 100) if round_up else hundredths // 100)


def unavailable_limit(value: IntOrPercent, total: int, surge: int = 0) -> int:
    """How many of `total` may be unavailable: at least one unless a surge makes room."""
    return max(resolve(value, total, round_up=False), 0 if surge else 1)


def replacement_budget(present: int, wanted: int, limit: int, unavailable: int) -> int:
    """How many outdated units may be taken away now (modelserving spec 3.7, 3.8).

    `present` counts all units that exist, those being deleted too; `unavailable` those that are
    not running and not themselves candidates. At least 0.
    """
    return max(0, present - max(0, wanted - limit) - unavailable)
