"""When upstream's autoscaler panics: the compat gate (autoscaling spec 2.11).

Invariant: panic is over exactly one millisecond after the hold time of the last hit. The decider's
own gate, which looks at the load before the bounds, is in `policy_limits`.
"""

from dataclasses import dataclass

_INT32 = 1 << 32


@dataclass(frozen=True, kw_only=True)
class PanicGate:
    """The settings of the gate; a hold of 0 ms switches panic off."""

    threshold_percent: int | None
    hold_ms: int

    def hit(self, want: int, current: int) -> bool:
        """Whether the clamped `want` reaches the threshold, in upstream's 32-bit arithmetic."""
        if self.threshold_percent is None:
            return False
        return wrap_int32(want * 100) >= wrap_int32(current * self.threshold_percent)

    def refreshed(self, until_ms: int, now_ms: int, *, hit: bool) -> int:
        """The end of panic after a loop."""
        return now_ms + self.hold_ms if hit and self.hold_ms > 0 else until_ms

    def active(self, until_ms: int, now_ms: int) -> bool:
        """Whether panic rules at `now_ms`."""
        return self.hold_ms > 0 and now_ms <= until_ms


def wrap_int32(value: int) -> int:
    """`value` as a signed 32-bit integer that overflows silently."""
    return (value + _INT32 // 2) % _INT32 - _INT32 // 2
