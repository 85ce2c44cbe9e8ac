"""Upstream's repair of the ratio between two roles (autoscaling spec 5.2).

Compat rule, kept with its defect D13: the repair of one bound may break the other. Invariant: both
results lie inside their roles' bounds.
"""

import math
from dataclasses import dataclass
from decimal import Decimal

from inferbus_autoscaler.policy_recommendation import ceiling, clamp, divide


@dataclass(frozen=True)
class RoleReplicas:
    """The replicas of one role and its bounds."""

    replicas: int
    min_replicas: int
    max_replicas: int

    def clamped(self, replicas: int) -> "RoleReplicas":
        """The role with `replicas` inside its bounds."""
        inside = clamp(replicas, self.min_replicas, self.max_replicas)
        return RoleReplicas(inside, self.min_replicas, self.max_replicas)


@dataclass(frozen=True)
class Repair:
    """What became of the pair."""

    numerator: int
    denominator: int
    adjusted: bool
    ratio: str
    """Shortest decimal form of numerator / denominator; empty where there is none."""


def repair(
    numerator: RoleReplicas, denominator: RoleReplicas, limits: tuple[float, float] | None
) -> Repair:
    """Bring numerator / denominator between `limits` (lowest, highest); None: only the bounds."""
    num = numerator.clamped(numerator.replicas)
    den = denominator.clamped(denominator.replicas)
    if limits is None or num.replicas == den.replicas == 0:
        return Repair(num.replicas, den.replicas, adjusted=False, ratio="")
    num, den, adjusted = _seed(num, den)
    low, high = limits
    ratio = divide(num.replicas, den.replicas)
    if ratio < low:
        num, den, adjusted = *_raise_ratio(num, den, low), True
    elif ratio > high:
        num, den, adjusted = *_lower_ratio(num, den, high), True
    return Repair(num.replicas, den.replicas, adjusted, ratio_text(num.replicas, den.replicas))


def ratio_text(numerator: int, denominator: int) -> str:
    """The shortest decimal of the quotient without an exponent; empty for a zero denominator."""
    if denominator == 0:
        return ""
    quotient = numerator / denominator
    return str(int(quotient)) if quotient.is_integer() else f"{Decimal(repr(quotient)):f}"


def _seed(num: RoleReplicas, den: RoleReplicas) -> tuple[RoleReplicas, RoleReplicas, bool]:
    if num.replicas == 0:
        return num.clamped(1), den, True
    if den.replicas == 0:
        return num, den.clamped(1), True
    return num, den, False


def _raise_ratio(
    num: RoleReplicas, den: RoleReplicas, low: float
) -> tuple[RoleReplicas, RoleReplicas]:
    needed = ceiling(low * den.replicas)
    if needed <= num.max_replicas:
        return num.clamped(needed), den
    num = num.clamped(num.max_replicas)
    return num, den.clamped(math.floor(num.replicas / low))


def _lower_ratio(
    num: RoleReplicas, den: RoleReplicas, high: float
) -> tuple[RoleReplicas, RoleReplicas]:
    needed = ceiling(divide(num.replicas, high))
    if needed <= den.max_replicas:
        return num, den.clamped(needed)
    den = den.clamped(den.max_replicas)
    return num.clamped(math.floor(high * den.replicas)), den
