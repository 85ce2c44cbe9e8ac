"""One timer for all pods.

A pod has at most one alarm: the time of its next look. However many pods there are, the event loop
holds one timer, for the earliest of them.
"""

import asyncio
import heapq
from collections.abc import Callable


class Alarms:
    """Calls `ring` with the keys whose time has come; times are those of the event loop."""

    def __init__(self, ring: Callable[[str], None]) -> None:
        self._ring = ring
        self._loop = asyncio.get_running_loop()
        self._wanted: dict[str, float] = {}
        self._queue: list[tuple[float, str]] = []
        self._timer: asyncio.TimerHandle | None = None

    def set(self, key: str, delay_seconds: float) -> None:
        """Ring for `key` after a delay, instead of whenever it was to ring before."""
        when = self._loop.time() + max(delay_seconds, 0.0)
        self._wanted[key] = when
        heapq.heappush(self._queue, (when, key))
        self._arm()

    def clear(self, key: str) -> None:
        """Don't ring for `key`."""
        self._wanted.pop(key, None)

    def close(self) -> None:
        """Ring no more."""
        self._wanted.clear()
        self._arm()

    def _arm(self) -> None:
        """Have the timer stand for the earliest alarm that is still wanted."""
        while self._queue and self._wanted.get(self._queue[0][1]) != self._queue[0][0]:
            heapq.heappop(self._queue)
        earliest = self._queue[0][0] if self._queue else None
        if self._timer is not None:
            if earliest is not None and self._timer.when() == earliest:
                return
            self._timer.cancel()
            self._timer = None
        if earliest is not None:
            self._timer = self._loop.call_at(earliest, self._due)

    def _due(self) -> None:
        self._timer = None
        now = self._loop.time()
        due: list[str] = []
        while self._queue and self._queue[0][0] <= now:
            when, key = heapq.heappop(self._queue)
            if self._wanted.get(key) == when:
                del self._wanted[key]
                due.append(key)
        for key in due:
            self._ring(key)
        self._arm()
