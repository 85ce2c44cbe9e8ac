"""When what is wrong with a policy's samples is worth telling, and when it is over.

A sample has its problems in itself; people look at the policy. Invariant: a hiccup of one round is
not told, what comes and goes is told once, and what is told stands until several rounds in a row
were whole.
"""

from collections.abc import Sequence
from dataclasses import dataclass

MOST_TOLD = 8
"""Problems of one policy at a time."""

BAD_ROUNDS = 2
"""Of the last `ROUNDS_LOOKED_AT`: so many make a problem."""
ROUNDS_LOOKED_AT = 4
"""Rounds in a row that must be whole before a problem is over."""
TOLD_ANEW_MS = 60_000
"""The words of a problem change no more often than that, virtual time."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Assessment:
    """One sampled key, round after round."""

    rounds: tuple[bool, ...] = ()
    """Whether each of the last rounds was whole, oldest first."""
    told: tuple[str, ...] | None = None
    """The problems that are told; None before it is known."""
    told_ms: int = 0


def assess(known: Assessment, problems: Sequence[str], now_ms: int) -> Assessment:
    """What is told after one more round that had these `problems`."""
    rounds = (*known.rounds, not problems)[-ROUNDS_LOOKED_AT:]
    found = tuple(problems[:MOST_TOLD])
    told, told_ms = known.told, known.told_ms
    is_bad = rounds.count(False) >= BAD_ROUNDS
    if found and is_bad and (not told or (told != found and now_ms - told_ms >= TOLD_ANEW_MS)):
        told, told_ms = found, now_ms
    elif len(rounds) == ROUNDS_LOOKED_AT and all(rounds):
        told, told_ms = (), now_ms
    return Assessment(rounds=rounds, told=told, told_ms=told_ms)
