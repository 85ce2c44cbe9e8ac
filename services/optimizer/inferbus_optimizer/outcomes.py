"""What a decision asks the shell to do; all of one decision is committed at once, or nothing.

Invariant: there is at most one timer a key, and a new one replaces the old.
"""

from dataclasses import dataclass

from inferbus_contracts.events.scaling import ScalingAllocated


@dataclass(frozen=True)
class Allocate:
    """Publish the replicas of every target of a mix."""

    policy: str
    """Key of the policy: the key of the event."""
    data: ScalingAllocated


@dataclass(frozen=True)
class SetTimer:
    """Wake the key at `at_ms`, virtual time."""

    at_ms: int
    reason: str


@dataclass(frozen=True)
class ClearTimer:
    """The timer of the key is not needed any more."""


Effect = Allocate | SetTimer | ClearTimer
