"""The histories of windows: compact in JSON, and never longer than a decision record can hold.

A history is a tuple of (time in ms, value) with times ascending. Invariant: packing loses nothing;
shortening errs on the careful side, for it lets the more extreme of two neighbours count longer.
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Annotated, Any

from pydantic import BeforeValidator, PlainSerializer

Stamped = tuple[int, int]
"""(time in ms, value)."""

MOST_STAMPS = 128
"""Of one value; exact for the longest window (30 min) at one change every 15 s."""


def pack(stamps: Iterable[Stamped]) -> list[int]:
    """Times as differences, values between them: a quarter of the bytes of pairs."""
    packed: list[int] = []
    last_ms = 0
    for at_ms, value in stamps:
        packed += (at_ms - last_ms, value)
        last_ms = at_ms
    return packed


def unpack(packed: Any) -> Any:
    """The inverse of `pack`; leaves what isn't packed to validation."""
    if not isinstance(packed, list):
        return packed
    stamps: list[Stamped] = []
    at_ms = 0
    for difference_ms, value in zip(packed[::2], packed[1::2], strict=True):
        at_ms += difference_ms
        stamps.append((at_ms, value))
    return tuple(stamps)


Stamps = Annotated[tuple[Stamped, ...], PlainSerializer(pack), BeforeValidator(unpack)]
"""A history whose values grow strictly less extreme from front to back."""


def shortened(stamps: Sequence[Stamped], most: int) -> tuple[Stamped, ...]:
    """At most `most` entries; of the two closest in time the older, more extreme value stays."""
    kept = list(stamps)
    while len(kept) > most:
        gaps = [later[0] - earlier[0] for earlier, later in pairwise(kept)]
        index = gaps.index(min(gaps))
        kept[index : index + 2] = [(kept[index + 1][0], kept[index][1])]
    return tuple(kept)
