"""The rooms in which SGLang's prefill and decode meet over one prompt.

A request names a room to both. Prefill computes once decode is there to take the blocks, decode
goes on once they are computed. Invariant: each side is in a room at most once; a room whose one
side left before the blocks were computed stays broken for the other, and is gone when both are.
"""

from dataclasses import dataclass, field
from enum import StrEnum


class Side(StrEnum):
    """Who comes to a room."""

    PREFILL = "prefill"
    DECODE = "decode"


class Stage(StrEnum):
    """How far a room is."""

    WAITING = "waiting"
    """For the other side."""
    MET = "met"
    COMPUTED = "computed"
    """The blocks are there for decode to take."""
    BROKEN = "broken"
    """The other side left."""


@dataclass
class _Room:
    sides: set[Side] = field(default_factory=set)
    stage: Stage = Stage.WAITING


class Rooms:
    """All rooms of one prefill engine."""

    def __init__(self) -> None:
        self._rooms: dict[int, _Room] = {}

    def __len__(self) -> int:
        """Rooms in which somebody is."""
        return len(self._rooms)

    def stage(self, number: int) -> Stage:
        """How far a room is in which somebody is."""
        return self._rooms[number].stage

    def enter(self, number: int, side: Side) -> None:
        """A side comes; raises `ValueError` where it is there already."""
        room = self._rooms.setdefault(number, _Room())
        if side in room.sides:
            raise ValueError(f"another request is in the bootstrap room {number}")
        room.sides.add(side)
        if len(room.sides) == len(Side) and room.stage is Stage.WAITING:
            room.stage = Stage.MET

    def computed(self, number: int) -> None:
        """Prefill, which is there, has computed the blocks."""
        if self._rooms[number].stage is Stage.MET:
            self._rooms[number].stage = Stage.COMPUTED

    def leave(self, number: int, side: Side) -> None:
        """A side that is there goes."""
        room = self._rooms[number]
        room.sides.remove(side)
        if not room.sides:
            del self._rooms[number]
        elif room.stage is not Stage.COMPUTED:
            room.stage = Stage.BROKEN
