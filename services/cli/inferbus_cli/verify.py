"""Computing recorded decisions again, and what differs where one doesn't come out the same. Pure.

Invariant: a decision is identical only when its whole body is, byte for byte.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from inferbus_contracts.admission.paths import child
from inferbus_contracts.errors import ProblemsError
from inferbus_contracts.events.scaling import DecisionRecord

Recompute = Callable[[DecisionRecord], bytes]
"""A decider's `recompute`: the body of the decision from its record's input."""

MOST_DIFFERENCES = 5
ABSENT = "(absent)"


@dataclass(frozen=True, slots=True)
class Difference:
    """One field that doesn't come out the same."""

    field: str
    recorded: Any
    recomputed: Any


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of one decision."""

    reason: str = ""
    """Why it couldn't be computed again; empty where it could."""
    differences: tuple[Difference, ...] = ()
    """The first ones."""

    @property
    def identical(self) -> bool:
        """Whether it came out the same."""
        return not self.reason and not self.differences


def verify(body: bytes, record: DecisionRecord, deciders: Mapping[str, Recompute]) -> Verdict:
    """Compute one decision again; `body` is what stands in the log."""
    recompute = deciders.get(record.decider)
    if recompute is None:
        return Verdict(f"no decider named {record.decider!r} is installed here")
    try:
        again = recompute(record)
    except ProblemsError as error:
        return Verdict(f"version {record.version} of {record.decider}: {error.problems[0]}")
    if again == body:
        return Verdict()
    found = _differences(json.loads(body), json.loads(again), "")
    first = tuple(next_ for next_, _ in zip(found, range(MOST_DIFFERENCES), strict=False))
    return Verdict(differences=first or (Difference("(bytes)", len(body), len(again)),))


def _differences(recorded: Any, again: Any, path: str) -> Iterator[Difference]:
    if isinstance(recorded, dict) and isinstance(again, dict):
        for name in sorted(recorded.keys() | again.keys()):
            mine, theirs = recorded.get(name, ABSENT), again.get(name, ABSENT)
            yield from _differences(mine, theirs, child(path, name))
    elif isinstance(recorded, list) and isinstance(again, list):
        for index in range(max(len(recorded), len(again))):
            mine = recorded[index] if index < len(recorded) else ABSENT
            theirs = again[index] if index < len(again) else ABSENT
            yield from _differences(mine, theirs, child(path, index))
    elif type(recorded) is not type(again) or recorded != again:
        yield Difference(path, recorded, again)
