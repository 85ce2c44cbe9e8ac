"""Whose request is served next, where sessions whose last answer is fresh go first.

What an engine computed for a session is still in its cache shortly after; the session's next
request is cheap as long as it is (routing spec 6.2). Invariant: among sessions that completed a
request the one that did so last is first, all others are let go in the order they came; what is
kept of sessions is bounded.
"""

from heapq import heappop, heappush
from typing import Generic, TypeVar

from inferbus_router.policy_queue import Applicant, Usage

T = TypeVar("T")


class BoostOrder(Generic[T]):
    """The `Order` of the freshest session first."""

    def __init__(self, most_sessions: int) -> None:
        """Completions of that many sessions are remembered, the latest."""
        self._most_sessions = most_sessions
        self._completions: dict[str, int] = {}
        """The number of each session's last completion, oldest first."""
        self._completed = 0
        self._arrivals = 0
        self._waiting: dict[T, str] = {}
        """Their sessions."""
        self._running: dict[T, str] = {}
        self._places: list[tuple[int, int, T]] = []
        """A heap of (negative number of the completion, 0 for none; arrival; request); a request
        that no longer waits is void.
        """

    def __len__(self) -> int:
        return len(self._waiting)

    def join(self, item: T, applicant: Applicant, now_ms: int) -> None:
        """See `Order`."""
        del now_ms
        self._arrivals += 1
        self._waiting[item] = applicant.session
        completion = self._completions.get(applicant.session, 0)
        heappush(self._places, (-completion, self._arrivals, item))

    def head(self) -> T | None:
        """See `Order`."""
        places = self._places
        while places and places[0][2] not in self._waiting:
            heappop(places)
        return places[0][2] if places else None

    def take(self, now_ms: int) -> T:
        """See `Order`."""
        del now_ms
        item = self.head()
        assert item is not None
        self._running[item] = self._waiting.pop(item)
        return item

    def leave(self, item: T, now_ms: int) -> bool:
        """See `Order`."""
        del now_ms
        return self._waiting.pop(item, None) is not None

    def ended(self, item: T, usage: Usage, now_ms: int) -> None:
        """See `Order`."""
        del now_ms
        session = self._running.pop(item)
        if not session or not usage.completed:
            return
        self._completed += 1
        self._completions.pop(session, None)
        self._completions[session] = self._completed
        if len(self._completions) > self._most_sessions:
            del self._completions[next(iter(self._completions))]
