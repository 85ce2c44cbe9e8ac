"""What deciders want of each target, what became of that, and what they can't decide by.

Invariant: of several decisions about a target the newest counts, in whatever order they arrive:
after a restart those of the autoscaler and those of the optimizer come one stream after the other.
"""

from functools import partial

from inferbus_contracts.base import EventData
from inferbus_contracts.events.scaling import (
    ApplyOutcome,
    ScalingAllocated,
    ScalingApplied,
    ScalingDecided,
    ScalingDemanded,
    ScalingRefused,
)
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.resources.annotations import ApplyMode
from inferbus_spec_watcher.status.view import Answer, Demand, Scaled, Wanted

DECISION_FACTS = (
    ScalingDecided.event_type,
    ScalingAllocated.event_type,
    ScalingApplied.event_type,
    ScalingDemanded.event_type,
    ScalingRefused.event_type,
)
"""The events that are folded here."""


class Decisions:
    """The last decision about each target, its answer, and the last that was applied."""

    def __init__(self) -> None:
        self._wanted: dict[ObjectKey, Wanted] = {}
        self._scaled: dict[ObjectKey, Scaled] = {}
        self._answers: dict[ObjectKey, Answer] = {}
        self._demands: dict[ObjectKey, Demand] = {}
        self._refused: dict[ObjectKey, ScalingRefused] = {}

    def wanted(self, target: ObjectKey) -> Wanted | None:
        """The last decision about a target, or about a role of one."""
        return self._wanted.get(target)

    def scaled(self, target: ObjectKey) -> Scaled | None:
        """The last time that a decision changed its replicas."""
        return self._scaled.get(target)

    def answer(self, target: ObjectKey) -> Answer | None:
        """What became of the last decision about a target that was answered."""
        return self._answers.get(target)

    def demand(self, policy: ObjectKey) -> Demand | None:
        """The last total of a mix."""
        return self._demands.get(policy)

    def refused(self, policy: ObjectKey) -> ScalingRefused | None:
        """What the autoscaler said of a policy."""
        return self._refused.get(policy)

    def take(self, key: ObjectKey, data: EventData, time_ms: int, id_: str = "") -> list[ObjectKey]:
        """Fold one event in; the targets, or the policy, of which something else is known now."""
        if isinstance(data, ScalingApplied):
            return self._answered(key, data, time_ms)
        if isinstance(data, ScalingDemanded):
            self._demands[key] = Demand(data.mode, tuple(data.record.limiters), time_ms)
            return [key]
        if isinstance(data, ScalingRefused):
            self._refused[key] = data
            return [key]
        wanted = _wanted_by(key, data, time_ms, id_)
        newer = {target: one for target, one in wanted.items() if self._is_newer(target, one)}
        self._wanted |= newer
        return list(newer)

    def _answered(self, key: ObjectKey, data: ScalingApplied, time_ms: int) -> list[ObjectKey]:
        answer = Answer(data.decision_id, data.outcome, data.message)
        applied = data.outcome is ApplyOutcome.APPLIED
        if applied:
            self._scaled[key] = Scaled(data.uid, time_ms)
        news = applied or self._answers.get(key) != answer
        self._answers[key] = answer
        return [key] if news else []

    def _is_newer(self, target: ObjectKey, wanted: Wanted) -> bool:
        known = self._wanted.get(target)
        return known is None or known.decided_at_ms <= wanted.decided_at_ms


def _wanted_by(key: ObjectKey, data: EventData, time_ms: int, id_: str) -> dict[ObjectKey, Wanted]:
    if not isinstance(data, ScalingDecided | ScalingAllocated):
        return {}
    wanted = partial(
        Wanted,
        decided_at_ms=time_ms,
        decision_id=id_,
        steps=tuple(data.record.limiters),
        applies=data.apply == ApplyMode.AUTO,
    )
    if isinstance(data, ScalingDecided):
        return {key: wanted(data.target_uid, data.desired, data.mode)}
    return {
        ObjectKey.parse(share.target): wanted(share.uid, share.desired, None)
        for share in data.allocations
    }
