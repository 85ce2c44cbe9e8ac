"""What one pod's page said lately: the ground that rates and quantiles stand on.

Invariant: a history belongs to one start of one pod, is in order of time, and is no longer than the
window needs.
"""

from dataclasses import dataclass
from typing import NamedTuple

from inferbus_shared.pages.scan import Scan

_MOST_WINDOWS = 4
"""A baseline older than that many windows says nothing about now."""


@dataclass(frozen=True, slots=True)
class Reading:
    """One page at one time of the steady clock."""

    at_ms: int
    scan: Scan


@dataclass(frozen=True, slots=True)
class PodReading:
    """What a pod's page says, and what it said about a window ago."""

    now: Reading
    past: Reading | None


class PodStart(NamedTuple):
    """One life of one pod: its counters start at zero with it."""

    uid: str
    since_ms: int | None


@dataclass(frozen=True, slots=True)
class History:
    """The readings of one page of one pod, oldest first."""

    start: PodStart
    readings: tuple[Reading, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Window:
    """How far back rates look, virtual milliseconds."""

    length_ms: int
    interval_ms: int
    """Time between two readings."""

    @property
    def shortest_ms(self) -> int:
        """A shorter span makes noise of a counter's steps."""
        return self.interval_ms // 2

    @property
    def longest_ms(self) -> int:
        """A longer span is history."""
        return _MOST_WINDOWS * max(self.length_ms, self.interval_ms)


def baseline(
    history: History | None, start: PodStart, now_ms: int, window: Window
) -> Reading | None:
    """The reading to compare with: about one window old, or the oldest while there is none.

    None for another start of the pod, and where every reading is too young or too old.
    """
    if history is None or history.start != start:
        return None
    usable = [
        reading
        for reading in history.readings
        if window.shortest_ms <= now_ms - reading.at_ms <= window.longest_ms
    ]
    full = [reading for reading in usable if _is_full(reading, now_ms, window)]
    return full[-1] if full else usable[0] if usable else None


def remember(history: History | None, start: PodStart, reading: Reading, window: Window) -> History:
    """The history with one more reading, and without those that no later reading will need."""
    past = () if history is None or history.start != start else history.readings
    past = tuple(item for item in past if item.at_ms < reading.at_ms)
    full = sum(_is_full(item, reading.at_ms, window) for item in past)
    return History(start, (*past[max(full - 1, 0) :], reading))


def _is_full(reading: Reading, now_ms: int, window: Window) -> bool:
    """A whole window old, but for the jitter of the readings."""
    return now_ms - reading.at_ms >= window.length_ms - window.shortest_ms
