"""Requests whose key-value blocks are on their way from another engine.

They wait without holding anything, and others overtake them (vLLM's state "waiting for remote
KVs"). Invariant: a sequence is taken once, not before its blocks are there, and those whose blocks
are there at the same time in the order they came.
"""

import heapq
from itertools import count

from inferbus_engine_simulator.policy_sequence import Sequence


class Arrivals:
    """The sequences, by when their blocks are there."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Sequence]] = []
        self._numbers = count()

    def __len__(self) -> int:
        """How many wait."""
        return len(self._heap)

    @property
    def next_us(self) -> int | None:
        """When the next one is there; None when none waits."""
        return self._heap[0][0] if self._heap else None

    @property
    def sequences(self) -> list[Sequence]:
        """All that wait, the next one first."""
        return [sequence for _, _, sequence in sorted(self._heap)]

    def add(self, sequence: Sequence) -> None:
        """Wait for its blocks from when it was submitted on."""
        due_us = sequence.submitted_us + sequence.request.transfer_us
        heapq.heappush(self._heap, (due_us, next(self._numbers), sequence))

    def take(self, now_us: int) -> list[Sequence]:
        """Those that are there by now."""
        taken = []
        while self._heap and self._heap[0][0] <= now_us:
            taken.append(heapq.heappop(self._heap)[2])
        return taken

    def remove(self, sequence: Sequence) -> bool:
        """Wait for it no longer; False when it wasn't waited for."""
        left = [entry for entry in self._heap if entry[2] is not sequence]
        found = len(left) < len(self._heap)
        heapq.heapify(left)
        self._heap = left
        return found
