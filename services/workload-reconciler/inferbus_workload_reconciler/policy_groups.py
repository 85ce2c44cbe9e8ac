"""How many of something there are, and which go first: the rules for groups and role replicas.

Ordinals are identity only. A gap that a deletion left stays until something is added, and something
that stands outside the wanted range is tolerated (modelserving spec 3.4, 3.5).

Invariant: scaling never touches more units than the difference, and those with an ordinal below the
partition only when no others are left (defect MS_D10).
"""

from collections.abc import Collection, Iterable, Sequence
from itertools import count, islice
from typing import NamedTuple

BATCH = 256
"""The most units that one plan adds; the next plan goes on."""


class Candidate(NamedTuple):
    """A group or role replica that may be deleted."""

    ordinal: int
    running: bool
    deleting: bool = False
    cost: int = 0


def missing_ordinals(present: Collection[int], wanted: int, limit: int = BATCH) -> list[int]:
    """The ordinals to add: as many as are lacking, the lowest free ones first.

    Effort and memory depend on `limit`, not on `wanted`.
    """
    lacking = min(wanted - len(present), limit)
    free = (ordinal for ordinal in count() if ordinal not in present)
    return list(islice(free, max(0, lacking)))


def deletion_order(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Not running first, then the least deletion cost, then the highest ordinal."""
    return sorted(candidates, key=lambda one: (one.running, one.cost, -one.ordinal))


def surplus(candidates: Sequence[Candidate], wanted: int, partition: int) -> list[Candidate]:
    """The units to delete, in order; those that are being deleted already count as such."""
    excess = max(0, len(candidates) - wanted)
    protected = [one for one in candidates if one.ordinal < partition]
    others = [one for one in candidates if one.ordinal >= partition]
    return [*deletion_order(others), *deletion_order(protected)][:excess]


def replacement_order(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Not running first, then the highest ordinal (modelserving spec 3.7, 3.8)."""
    return sorted(candidates, key=lambda one: (one.running, -one.ordinal))


def place_in_words(candidate: Candidate) -> str:
    """How a candidate stands, for the cause of an action."""
    state = "deleting" if candidate.deleting else "running" if candidate.running else "not running"
    return f"{state}, deletion cost {candidate.cost}"
