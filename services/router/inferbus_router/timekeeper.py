"""One timer for any number of deadlines.

A timer per request would cost more than the rest of its bookkeeping. Invariant: while anything
counts, the one timer is set for no later than the first deadline; while nothing does, there is no
timer.
"""

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

from inferbus_router.deadlines import DeadlineQueue

T = TypeVar("T")

_NEVER_MS = 1 << 62
_GRAIN_MS = 5
"""Deadlines that fall due this close together are seen by one wake-up."""


class Deadlines(DeadlineQueue[T]):
    """Deadlines of one length and what happens when one passes."""

    def __init__(self, keeper: "Timekeeper", limit_ms: int, on_passed: Callable[[T], None]) -> None:
        super().__init__(limit_ms)
        self._keeper = keeper
        self._on_passed = on_passed

    def start(self, item: T, now_ms: int) -> int:
        """Count from now, which is the keeper's `now_ms`; returns when it falls due."""
        due_ms = now_ms + self.limit_ms
        if item in self._due_ms:
            del self._due_ms[item]
        self._due_ms[item] = due_ms
        if due_ms < self._keeper.wakes_at_ms:
            self._keeper.wake_at(due_ms, now_ms)
        return due_ms

    def run_passed(self, now_ms: int) -> None:
        """Act on those that are due."""
        for item in self.take_expired(now_ms):
            self._on_passed(item)


class Timekeeper:
    """The timer behind all deadlines that are counted by one clock."""

    def __init__(self, now_ms: Callable[[], int], rate: float = 1.0) -> None:
        """`rate`: milliseconds of that clock per millisecond of the event loop's."""
        self.now_ms = now_ms
        self.wakes_at_ms = _NEVER_MS
        self._loop = asyncio.get_running_loop()
        self._rate = rate
        self._deadlines: list[Deadlines[Any]] = []
        self._timer: asyncio.TimerHandle | None = None

    def deadlines(self, limit_ms: int, on_passed: Callable[[T], None]) -> Deadlines[T]:
        """Deadlines of that length."""
        deadlines: Deadlines[T] = Deadlines(self, limit_ms, on_passed)
        self._deadlines.append(deadlines)
        return deadlines

    def forget(self, deadlines: Deadlines[Any]) -> None:
        """None of these passes any more."""
        self._deadlines.remove(deadlines)

    def wake_at(self, due_ms: int, now_ms: int) -> None:
        """Set the timer for `due_ms`, instead of for what it was set."""
        if self._timer is not None:
            self._timer.cancel()
        self.wakes_at_ms = due_ms
        wait_ms = max(_GRAIN_MS, due_ms - now_ms) / self._rate
        self._timer = self._loop.call_later(wait_ms / 1000, self._wake)

    def stop(self) -> None:
        """Forget the timer; no deadline passes any more."""
        if self._timer is not None:
            self._timer.cancel()
        self._deadlines.clear()
        self._timer, self.wakes_at_ms = None, -_NEVER_MS

    def _wake(self) -> None:
        self._timer, self.wakes_at_ms = None, _NEVER_MS
        now_ms = self.now_ms()
        try:
            for deadlines in list(self._deadlines):
                deadlines.run_passed(now_ms)
        finally:
            self._set_timer(now_ms)

    def _set_timer(self, now_ms: int) -> None:
        due = (deadlines.next_due_ms() for deadlines in self._deadlines)
        due_ms = min((each for each in due if each is not None), default=_NEVER_MS)
        if due_ms < self.wakes_at_ms:
            self.wake_at(due_ms, now_ms)
