"""What a decision asks the shell to do; all of one decision is committed at once, or nothing.

Timers and their invariant are those of every decider (contracts `deciding`).
"""

from dataclasses import dataclass

from inferbus_contracts.deciding import ClearTimer, SetTimer
from inferbus_contracts.events.scaling import ScalingDecided, ScalingDemanded


@dataclass(frozen=True)
class Decide:
    """Publish the replicas of a single target."""

    target: str
    """Key of the target: the key of the event."""
    data: ScalingDecided

    @property
    def key(self) -> str:
        """What it decides about."""
        return self.target


@dataclass(frozen=True)
class Demand:
    """Publish the total of a mix for the optimizer."""

    policy: str
    """Key of the policy: the key of the event."""
    data: ScalingDemanded

    @property
    def key(self) -> str:
        """What it decides about."""
        return self.policy


Effect = Decide | Demand | SetTimer | ClearTimer
