"""Deadlines of one length, without a timer each: a queue in which the oldest is always first.

Invariant: entries stand in the order in which they were started, and so in the order in which they
fall due; starting, stopping and asking for the first are each one dictionary operation.
"""

from typing import Generic, TypeVar

T = TypeVar("T")


class DeadlineQueue(Generic[T]):
    """What must not take longer than `limit_ms`."""

    def __init__(self, limit_ms: int) -> None:
        self.limit_ms = limit_ms
        self._due_ms: dict[T, int] = {}

    def start(self, item: T, now_ms: int) -> int:
        """Count from now (again, where it was counting already); returns when it falls due."""
        due_ms = now_ms + self.limit_ms
        if item in self._due_ms:
            del self._due_ms[item]
        self._due_ms[item] = due_ms
        return due_ms

    def stop(self, item: T) -> None:
        """It came in time; nothing happens where it wasn't counting."""
        self._due_ms.pop(item, None)

    def take_newest(self) -> T | None:
        """The one that was started last; it no longer counts."""
        return self._due_ms.popitem()[0] if self._due_ms else None

    def items(self) -> list[T]:
        """Those that count, oldest first."""
        return list(self._due_ms)

    def next_due_ms(self) -> int | None:
        """When the first falls due."""
        for due_ms in self._due_ms.values():
            return due_ms
        return None

    def take_expired(self, now_ms: int) -> list[T]:
        """Those that are due by now, oldest first; they no longer count."""
        expired = []
        for item, due_ms in self._due_ms.items():
            if due_ms > now_ms:
                break
            expired.append(item)
        for item in expired:
            del self._due_ms[item]
        return expired
