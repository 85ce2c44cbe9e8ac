"""What deciders want of each target, and when a decision last changed it.

Invariant: of several decisions about a target the newest counts, in whatever order they arrive:
after a restart those of the autoscaler and those of the optimizer come one stream after the other.
"""

from inferbus_contracts.base import EventData
from inferbus_contracts.events.scaling import (
    ApplyOutcome,
    Limiter,
    ScalingAllocated,
    ScalingApplied,
    ScalingDecided,
)
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.resources.annotations import ApplyMode
from inferbus_spec_watcher.status.view import Scaled, Wanted

DECISION_FACTS = (
    ScalingDecided.event_type,
    ScalingAllocated.event_type,
    ScalingApplied.event_type,
)
"""The events that are folded here."""


class Decisions:
    """The last decision about each target, and the last that was applied."""

    def __init__(self) -> None:
        self._wanted: dict[ObjectKey, Wanted] = {}
        self._scaled: dict[ObjectKey, Scaled] = {}

    def wanted(self, target: ObjectKey) -> Wanted | None:
        """The last decision about a target, or about a role of one."""
        return self._wanted.get(target)

    def scaled(self, target: ObjectKey) -> Scaled | None:
        """The last time that a decision changed its replicas."""
        return self._scaled.get(target)

    def take(self, key: ObjectKey, data: EventData, time_ms: int) -> list[ObjectKey]:
        """Fold one event in; the targets of which something else is known now."""
        if isinstance(data, ScalingDecided):
            wanted = {key: _wanted(data, time_ms)}
        elif isinstance(data, ScalingAllocated):
            wanted = {
                ObjectKey.parse(share.target): Wanted(share.uid, share.desired, None, time_ms)
                for share in data.allocations
            }
        elif isinstance(data, ScalingApplied) and data.outcome is ApplyOutcome.APPLIED:
            self._scaled[key] = Scaled(data.uid, time_ms)
            return [key]
        else:
            return []
        newer = {target: one for target, one in wanted.items() if self._is_newer(target, one)}
        self._wanted |= newer
        return list(newer)

    def _is_newer(self, target: ObjectKey, wanted: Wanted) -> bool:
        known = self._wanted.get(target)
        return known is None or known.decided_at_ms <= wanted.decided_at_ms


def _wanted(data: ScalingDecided, time_ms: int) -> Wanted:
    steps = (step for step in data.record.limiters if step.name is Limiter.RATIO)
    return Wanted(
        data.target_uid,
        data.desired,
        data.mode,
        time_ms,
        ratio=next(steps, None),
        applies=data.apply == ApplyMode.AUTO,
    )
