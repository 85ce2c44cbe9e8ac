"""The last decisions of every key, as the log tells them.

Invariant: what is kept of a key are its newest decisions without a gap, newest last; a decision
that is delivered twice is kept once.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from inferbus_contracts.api.console import AnswerRow, ExplainedDecision
from inferbus_contracts.base import EventData
from inferbus_contracts.events.scaling import ScalingAllocated, ScalingApplied, ScalingDecided
from inferbus_contracts.keys import ObjectKey
from inferbus_shared.bus.messages import Received

DECISION_TYPES = (ScalingDecided.event_type, ScalingAllocated.event_type)

KEPT = 20
"""Decisions of one key that are kept in memory; older ones are read from the log."""


@dataclass(frozen=True, slots=True)
class Decision:
    """One decision and where it stands in the log."""

    id: str
    time_ms: int
    sequence: int
    key: ObjectKey
    data: ScalingDecided | ScalingAllocated

    @property
    def targets(self) -> tuple[ObjectKey, ...]:
        """What it gives replicas to."""
        if isinstance(self.data, ScalingAllocated):
            return tuple(ObjectKey.parse(share.target) for share in self.data.allocations)
        return (self.key,)

    def explained(self, answers: Iterable[Received[EventData]]) -> ExplainedDecision:
        """The decision as it is told, with those of `answers` that are about it."""
        own = [
            AnswerRow(
                id=event.id,
                time_ms=event.time_ms,
                target=str(event.key),
                body=event.data.to_dict(),
            )
            for event in answers
            if isinstance(event.data, ScalingApplied) and event.data.decision_id == self.id
        ]
        return ExplainedDecision(
            id=self.id,
            type=self.data.event_type,
            time_ms=self.time_ms,
            sequence=self.sequence,
            key=str(self.key),
            body=self.data.to_dict(),
            applied=[answer.body for answer in own],
            answers=own,
        )


def read_decision(event: Received[EventData]) -> Decision | None:
    """The decision in an event; None when it is another event."""
    if not isinstance(event.data, ScalingDecided | ScalingAllocated):
        return None
    return Decision(event.id, event.time_ms, event.sequence, event.key, event.data)


class DecisionLog:
    """The newest decisions by key."""

    def __init__(self, kept: int = KEPT) -> None:
        self._kept = kept
        self._by_key: dict[ObjectKey, deque[Decision]] = {}

    def take(self, decision: Decision) -> None:
        """Keep a decision; the oldest of its key may go."""
        known = self._by_key.setdefault(decision.key, deque(maxlen=self._kept))
        if not known or known[-1].sequence < decision.sequence:
            known.append(decision)

    def decided_keys(self) -> tuple[ObjectKey, ...]:
        """Every key that something was decided about, in order."""
        return tuple(sorted(self._by_key))

    def newest(self, key: ObjectKey) -> tuple[Decision, ...]:
        """What is kept of a key, newest first."""
        return tuple(reversed(self._by_key.get(key, ())))

    def last(self) -> Iterator[Decision]:
        """The last decision of every key."""
        for known in self._by_key.values():
            yield known[-1]
