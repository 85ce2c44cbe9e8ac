"""The one place that reads a clock.

Virtual time runs `rate` times as fast as real time from an anchor that all services of a platform
share: virtual = anchor.virtual + (real − anchor.real) × rate. At rate 1 both are the same. Every
time in an event or a core is virtual; only this module and timers know real time.
"""

import asyncio
import time
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Anchor:
    """A moment at which both times are known, and how fast virtual time runs from there."""

    real_ms: int
    virtual_ms: int
    rate: float

    def to_virtual(self, real_ms: int) -> int:
        """The virtual time of a real one, milliseconds."""
        return self.virtual_ms + round((real_ms - self.real_ms) * self.rate)

    def to_real(self, virtual_ms: int) -> int:
        """The real time of a virtual one, milliseconds."""
        return self.real_ms + round((virtual_ms - self.virtual_ms) / self.rate)


REAL_TIME = Anchor(real_ms=0, virtual_ms=0, rate=1.0)


class Clock(Protocol):
    """What services see of time."""

    @property
    def anchor(self) -> Anchor:
        """How virtual and real time relate."""
        ...

    def now_ms(self) -> int:
        """Virtual milliseconds since 1970."""
        ...

    def steady_ms(self) -> int:
        """Virtual milliseconds since some moment: for how long something took. It never goes back,
        and never jumps when somebody sets the machine's clock."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait for virtual seconds."""
        ...


class SystemClock:
    """The machine's clock behind an anchor."""

    def __init__(self, anchor: Anchor = REAL_TIME) -> None:
        self._anchor = anchor

    @property
    def anchor(self) -> Anchor:
        """How virtual and real time relate."""
        return self._anchor

    def now_ms(self) -> int:
        """Virtual milliseconds since 1970."""
        return self._anchor.to_virtual(time.time_ns() // 1_000_000)

    def steady_ms(self) -> int:
        """Virtual milliseconds since some moment, whatever the machine's clock is set to."""
        return round(time.monotonic_ns() / 1_000_000 * self._anchor.rate)

    async def sleep(self, seconds: float) -> None:
        """Wait for virtual seconds."""
        await asyncio.sleep(seconds / self._anchor.rate)


def real_now_ms() -> int:
    """Real milliseconds since 1970, for what the outside world stamps."""
    return time.time_ns() // 1_000_000
