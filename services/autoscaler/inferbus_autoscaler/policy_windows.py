"""Upstream's sliding windows, with their edges to the millisecond (autoscaling spec 2.8, 2.12).

All are immutable: `appended` gives a new window. Times never go backwards, and a value counts up to
and including the instant it was stamped with plus the window's length. The windows of the default
decider, where a value holds until the next one, are in `policy_held_window`.
"""

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Generic, TypeVar

from inferbus_autoscaler.stamps import Stamped, Stamps

Snapshot = TypeVar("Snapshot")


class Best(StrEnum):
    """Which extreme a window looks for."""

    MAX = "max"
    MIN = "min"

    def of(self, *values: int) -> int:
        """The extreme of one or more values."""
        return max(values) if self is Best.MAX else min(values)

    def better(self, value: int, other: int) -> bool:
        """Whether `value` is strictly more extreme than `other`."""
        return value > other if self is Best.MAX else value < other


@dataclass(frozen=True)
class RecommendationWindow:
    """The extreme recommendation of the last `length_ms`: stabilisation.

    Holds only items that can still become the extreme: strictly worse ones from front to back.
    """

    best: Best
    length_ms: int
    items: Stamps = ()

    def appended(self, value: int, now_ms: int) -> "RecommendationWindow":
        """The window after a loop recommended `value`."""
        kept = _pop_worse(_alive(self.items, now_ms, self.length_ms), value, self.best)
        return replace(self, items=(*kept, (now_ms, value)))

    def extreme(self, now_ms: int) -> int | None:
        """None while there is no history, and always where the length is 0."""
        if self.length_ms == 0:
            return None
        alive = _alive(self.items, now_ms, self.length_ms)
        return alive[0][1] if alive else None


@dataclass(frozen=True)
class RateWindow:
    """The extreme value in force during the last `length_ms`: the base of rate limits.

    A value is in force until the next append, is stamped with that moment, and then counts for the
    window's length. The value in force itself is forgotten after two lengths without an append.
    """

    best: Best
    length_ms: int
    items: Stamps = ()
    """Superseded values with the time they were superseded at."""
    last: Stamped | None = None
    """The value in force."""

    def appended(self, value: int, now_ms: int) -> "RateWindow":
        """The window after a loop put `value` in force."""
        kept = _alive(self.items, now_ms, self.length_ms)
        last = self._in_force(now_ms)
        if last is not None:
            kept = (*_pop_worse(kept, last, self.best), (now_ms, last))
        return replace(self, items=kept, last=(now_ms, value))

    def extreme(self, current: int, now_ms: int) -> int | None:
        """The extreme of history and `current`; None where the length is 0."""
        if self.length_ms == 0:
            return None
        last = self._in_force(now_ms)
        history = () if last is None else (last,)
        alive = _alive(self.items, now_ms, self.length_ms)
        front = (alive[0][1],) if alive else ()
        return self.best.of(current, *history, *front)

    def _in_force(self, now_ms: int) -> int | None:
        if self.last is None or self.last[0] + 2 * self.length_ms < now_ms:
            return None
        return self.last[1]


@dataclass(frozen=True)
class SnapshotWindow(Generic[Snapshot]):
    """The histograms to compare with: the newest that are strictly older than `fresh_ms`."""

    fresh_ms: int
    keep_ms: int
    items: tuple[tuple[int, Snapshot], ...] = ()

    def appended(self, snapshot: Snapshot, now_ms: int) -> "SnapshotWindow[Snapshot]":
        """The window after a scrape."""
        return replace(self, items=(*self._expired(now_ms), (now_ms, snapshot)))

    def baseline(self, now_ms: int) -> Snapshot | None:
        """None while no snapshot is old enough, or all are too old."""
        items = self._expired(now_ms)
        if items and items[0][0] + self.fresh_ms < now_ms:
            return items[0][1]
        return None

    def _expired(self, now_ms: int) -> tuple[tuple[int, Snapshot], ...]:
        first = 0
        while first < len(self.items) and self.items[first][0] + self.keep_ms < now_ms:
            first += 1
        while first + 1 < len(self.items) and self.items[first + 1][0] + self.fresh_ms < now_ms:
            first += 1
        return self.items[first:]


def _alive(items: tuple[Stamped, ...], now_ms: int, length_ms: int) -> tuple[Stamped, ...]:
    first = 0
    while first < len(items) and items[first][0] + length_ms < now_ms:
        first += 1
    return items[first:] if first else items


def _pop_worse(items: tuple[Stamped, ...], value: int, best: Best) -> tuple[Stamped, ...]:
    end = len(items)
    while end and not best.better(items[end - 1][1], value):
        end -= 1
    return items[:end]
