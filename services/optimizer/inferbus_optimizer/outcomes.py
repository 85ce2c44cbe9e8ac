"""What a decision asks the shell to do; all of one decision is committed at once, or nothing.

Timers and their invariant are those of every decider (contracts `deciding`).
"""

from dataclasses import dataclass

from inferbus_contracts.deciding import ClearTimer, SetTimer
from inferbus_contracts.events.scaling import ScalingAllocated


@dataclass(frozen=True)
class Allocate:
    """Publish the replicas of every target of a mix."""

    policy: str
    """Key of the policy: the key of the event."""
    data: ScalingAllocated

    @property
    def key(self) -> str:
        """What it decides about."""
        return self.policy


Effect = Allocate | SetTimer | ClearTimer
