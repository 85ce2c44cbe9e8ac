"""What a set of rules came to, before anyone decides whether that is worth saying.

Both rule sets (the default and compat) answer with an `Evaluation`; `core` turns it into effects.
"""

from dataclasses import dataclass

from inferbus_autoscaler.policy_need import MetricLoad
from inferbus_autoscaler.state import TargetState
from inferbus_contracts.events.scaling import LimiterStep, Mode


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """One look at a key."""

    state: TargetState
    """The state after it, if nothing is decided."""
    current: int
    desired: int
    mode: Mode
    limited: bool = False
    """Whether the number may change by itself: a limiter that looks back holds it."""
    capacity: float = 0.0
    """Of a mix: capacity units that serve the load."""
    metrics: tuple[MetricLoad, ...] = ()
    steps: tuple[LimiterStep, ...] = ()
