"""Which requests wait in the router while their model has no replica, and what is said about them.

A request for a model at zero replicas is what wakes it: it waits, bounded in number, bytes and
time. Invariant: what waits is told to the autoscaler at once, and again every second as long as it
waits.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

from inferbus_contracts.events.demand import DemandPending
from inferbus_contracts.keys import ObjectKey

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Waiting:
    """One request that waits."""

    target: ObjectKey
    model: str
    since_ms: int
    body_bytes: int


@dataclass(frozen=True, slots=True)
class TargetPending:
    """An event to emit, and what it is keyed by."""

    target: ObjectKey
    data: DemandPending


class HoldQueue(Generic[T]):
    """The requests that wait, oldest first."""

    def __init__(self, most_requests: int, most_bytes: int) -> None:
        self._most_requests = most_requests
        self._most_bytes = most_bytes
        self._bytes = 0
        self._waiting: dict[T, Waiting] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def admit(self, item: T, waiting: Waiting) -> bool:
        """Let a request wait; False where there is no room for it."""
        if len(self._waiting) >= self._most_requests:
            return False
        if self._bytes + waiting.body_bytes > self._most_bytes:
            return False
        self._waiting[item] = waiting
        self._bytes += waiting.body_bytes
        return True

    def leave(self, item: T) -> None:
        """It no longer waits; nothing happens where it didn't."""
        waiting = self._waiting.pop(item, None)
        if waiting is not None:
            self._bytes -= waiting.body_bytes

    def items(self) -> list[T]:
        """Those that wait, oldest first."""
        return list(self._waiting)

    def pending(self, router: str) -> Iterator[TargetPending]:
        """The events that tell what waits now, by target and model."""
        oldest: dict[tuple[ObjectKey, str], int] = {}
        count: dict[tuple[ObjectKey, str], int] = {}
        for waiting in self._waiting.values():
            key = (waiting.target, waiting.model)
            oldest[key] = min(waiting.since_ms, oldest.get(key, waiting.since_ms))
            count[key] = count.get(key, 0) + 1
        for key in sorted(count):
            target, model = key
            data = DemandPending(
                router=router, model=model, waiting=count[key], since_ms=oldest[key]
            )
            yield TargetPending(target, data)
