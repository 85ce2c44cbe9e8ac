"""When each key is sampled.

Rounds have numbers, virtual time over interval, and a key has a moment of its own in each, so that
load is spread and every instance agrees. Invariant: a key is taken at most once per round, unless
something happened that the sample of the round cannot have known; no clock that is set back or
forward lets a key wait for longer than a round.
"""

import hashlib
import heapq
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from inferbus_contracts.keys import ObjectKey

_NEVER = -1


class Round(NamedTuple):
    """One sample to be taken."""

    key: ObjectKey
    number: int
    trigger: str = ""
    """What asks for another sample in a round that has one: the id of an event, or that the clock
    was set back; else empty."""


@dataclass(slots=True)
class _Entry:
    """One key in the timetable."""

    phase_ms: int
    due_ms: int = 0
    trigger: str = ""
    last_number: int = _NEVER
    highest_number: int = _NEVER
    last_ms: int = _NEVER


def phase_ms(key: ObjectKey, interval_ms: int) -> int:
    """Where in its rounds a key is taken: 0 to `interval_ms` - 1.

    The roles of a workload share it, because they share pages.
    """
    hashed = hashlib.blake2b(str(key.owner).encode(), digest_size=8).digest()
    return int.from_bytes(hashed) % interval_ms


class Timetable:
    """The next moment of every key; times are virtual milliseconds."""

    def __init__(self, interval_ms: int) -> None:
        """A key is woken again after a fifth of `interval_ms` at the earliest."""
        self._interval_ms = interval_ms
        self._rest_ms = interval_ms // 5
        self._entries: dict[ObjectKey, _Entry] = {}
        self._heap: list[tuple[int, ObjectKey]] = []
        self._now_ms = 0
        self._times_set_back = 0

    @property
    def next_ms(self) -> int | None:
        """When the next key is due; None without keys."""
        while self._heap:
            due_ms, key = self._heap[0]
            entry = self._entries.get(key)
            if entry is not None and entry.due_ms == due_ms:
                return due_ms
            heapq.heappop(self._heap)
        return None

    def keep(self, keys: Iterable[ObjectKey], now_ms: int) -> None:
        """Take exactly these keys; new ones are due at once."""
        wanted = frozenset(keys)
        for gone in self._entries.keys() - wanted:
            del self._entries[gone]
        for key in sorted(wanted - self._entries.keys()):
            entry = _Entry(phase_ms(key, self._interval_ms))
            self._entries[key] = entry
            self._put(key, entry, now_ms)

    def wake(self, triggers: Mapping[ObjectKey, str], now_ms: int) -> None:
        """Take these keys as soon as they have rested; the value says what for."""
        for key, trigger in triggers.items():
            entry = self._entries.get(key)
            if entry is None:
                continue
            rested_ms = entry.last_ms + self._rest_ms if entry.last_ms != _NEVER else now_ms
            entry.trigger = trigger
            if max(rested_ms, now_ms) < entry.due_ms:
                self._put(key, entry, max(rested_ms, now_ms))

    def due(self, now_ms: int) -> list[Round]:
        """The samples to take now; each key's next moment is in a later round."""
        self._follow_the_clock(now_ms)
        rounds = []
        while (next_ms := self.next_ms) is not None and next_ms <= now_ms:
            _, key = heapq.heappop(self._heap)
            entry = self._entries[key]
            number = now_ms // self._interval_ms
            again = entry.trigger if number == entry.last_number else ""
            if number != entry.last_number and number <= entry.highest_number:
                again = entry.trigger or f"clock-set-back-{self._times_set_back}"
            if again or number != entry.last_number:
                rounds.append(Round(key, number, again))
            entry.trigger, entry.last_number, entry.last_ms = "", number, now_ms
            entry.highest_number = max(number, entry.highest_number)
            self._put(key, entry, (number + 1) * self._interval_ms + entry.phase_ms)
        return rounds

    def not_taken(self, round_: Round) -> None:
        """Nothing came of a round: the key needs no rest before it is woken."""
        entry = self._entries.get(round_.key)
        if entry is not None and entry.last_number == round_.number:
            entry.last_number, entry.last_ms = _NEVER, _NEVER
            entry.highest_number = min(entry.highest_number, round_.number - 1)

    def _follow_the_clock(self, now_ms: int) -> None:
        """Keys that wait for a time that was near and is far now are due at once."""
        if now_ms < self._now_ms:
            self._times_set_back += 1
            for key, entry in self._entries.items():
                if entry.due_ms - now_ms > 2 * self._interval_ms:
                    self._put(key, entry, now_ms)
        self._now_ms = now_ms

    def _put(self, key: ObjectKey, entry: _Entry, due_ms: int) -> None:
        entry.due_ms = due_ms
        heapq.heappush(self._heap, (due_ms, key))
