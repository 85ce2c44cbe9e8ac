"""The extreme of a value over a sliding window, where the value holds until it is changed.

The default decider's windows (autoscaling spec 2.12 with D20 fixed). Only changes are stored, so a
quiet system stores nothing, and the result doesn't depend on when samples happen to arrive: a value
that was superseded at time s counts until exactly s + length, and not at that instant any more.
"""

from dataclasses import dataclass

from inferbus_autoscaler.policy_windows import Best
from inferbus_autoscaler.stamps import Stamps, shortened

LONGEST_MS = 30 * 60 * 1000
"""The longest window a policy may ask for (autoscaling spec 1.2)."""


@dataclass(frozen=True)
class HeldWindow:
    """One value over time, seen from one side (`best` of every call must be the same)."""

    value: int | None = None
    """The value in force; None before the first."""
    past: Stamps = ()
    """Superseded values that can still become the extreme, with the time they ended."""

    def held(self, value: int, now_ms: int, best: Best) -> "HeldWindow":
        """The window after `value` came into force at `now_ms`; itself where nothing changed."""
        if value == self.value:
            return self
        if self.value is None:
            return HeldWindow(value, self.past)
        end = len(self.past)
        while end and not best.better(self.past[end - 1][1], self.value):
            end -= 1
        recent = (item for item in self.past[:end] if item[0] + LONGEST_MS > now_ms)
        return HeldWindow(value, (*recent, (now_ms, self.value)))

    def shortened(self, most: int) -> "HeldWindow":
        """The window with at most `most` superseded values."""
        return HeldWindow(self.value, shortened(self.past, most))

    def extreme(self, length_ms: int, now_ms: int, best: Best) -> int | None:
        """The extreme over the last `length_ms`, the value in force included; None before any."""
        if self.value is None:
            return None
        for ended_ms, value in self.past:
            if ended_ms + length_ms > now_ms:
                return best.of(value, self.value)
        return self.value

    def expiries(self, length_ms: int, now_ms: int, best: Best) -> list[int]:
        """When the extreme will change by itself, ascending, as long as the value holds."""
        if self.value is None:
            return []
        return [
            ended_ms + length_ms
            for ended_ms, value in self.past
            if ended_ms + length_ms > now_ms and best.better(value, self.value)
        ]
