"""How many Kubernetes Events an object may cause.

Each object and reason may tell 25 events at once and one more every five minutes, as for any
program that uses Kubernetes' own event recorder (client-go, `EventSourceObjectSpamFilter`).

Invariant: pure; the first event of an object and reason is always told.
"""

from dataclasses import dataclass, field

BURST = 25
REFILL_MS = 300_000
MOST_KNOWN = 10_000
"""How many objects and reasons are counted; past that counting begins anew."""


@dataclass(slots=True)
class EventBudget:
    """What was told, by object and reason."""

    _spent: dict[tuple[str, str], tuple[float, int]] = field(default_factory=dict)

    def take(self, uid: str, reason: str, now_ms: int) -> bool:
        """Whether one more event may be told; then it is counted."""
        spent, since_ms = self._spent.get((uid, reason), (0.0, now_ms))
        left = max(0.0, spent - (now_ms - since_ms) / REFILL_MS)
        allowed = left + 1 <= BURST
        if len(self._spent) >= MOST_KNOWN:
            self._spent.clear()
        self._spent[uid, reason] = (left + allowed, now_ms)
        return allowed
