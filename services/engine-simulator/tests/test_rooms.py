"""The rooms in which prefill and decode meet."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferbus_engine_simulator.policy_rooms import Rooms, Side, Stage


@pytest.mark.parametrize("first", list(Side))
def test_both_have_to_come_whoever_is_first(first: Side) -> None:
    second = Side.DECODE if first is Side.PREFILL else Side.PREFILL
    rooms = Rooms()
    rooms.enter(7, first)
    assert rooms.stage(7) is Stage.WAITING

    rooms.enter(7, second)
    assert rooms.stage(7) is Stage.MET
    rooms.computed(7)
    assert rooms.stage(7) is Stage.COMPUTED


def test_a_side_comes_once() -> None:
    rooms = Rooms()
    rooms.enter(7, Side.PREFILL)

    with pytest.raises(ValueError, match="room 7"):
        rooms.enter(7, Side.PREFILL)


@pytest.mark.parametrize("leaver", list(Side))
def test_who_is_left_alone_before_the_blocks_are_computed_is_told(leaver: Side) -> None:
    rooms = Rooms()
    for side in Side:
        rooms.enter(7, side)
    rooms.leave(7, leaver)
    if leaver is Side.DECODE:
        rooms.computed(7)

    assert rooms.stage(7) is Stage.BROKEN


@pytest.mark.parametrize("leaver", list(Side))
def test_nobody_is_needed_once_they_are_computed(leaver: Side) -> None:
    rooms = Rooms()
    for side in Side:
        rooms.enter(7, side)
    rooms.computed(7)
    rooms.leave(7, leaver)

    assert rooms.stage(7) is Stage.COMPUTED


def test_a_room_can_be_used_again() -> None:
    rooms = Rooms()
    rooms.enter(7, Side.PREFILL)
    rooms.leave(7, Side.PREFILL)
    rooms.enter(7, Side.DECODE)

    assert rooms.stage(7) is Stage.WAITING


@given(st.lists(st.tuples(st.integers(0, 2), st.sampled_from(Side)), max_size=40))
def test_no_room_is_left_behind(moves: list[tuple[int, Side]]) -> None:
    rooms = Rooms()
    inside: set[tuple[int, Side]] = set()
    for move in moves:
        if move in inside:
            rooms.leave(*move)
            inside.remove(move)
        else:
            rooms.enter(*move)
            inside.add(move)
        assert len(rooms) == len({number for number, _ in inside})
