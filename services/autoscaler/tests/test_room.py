"""How many replicas of a target can be scheduled: found short, probed, forgotten."""

from hypothesis import given
from hypothesis import strategies as st

from inferbus_autoscaler.facts import DeciderSettings, PolicyTarget, TargetFacts
from inferbus_autoscaler.policy_room import Room, room_after, rooms_after
from services.autoscaler.tests.builders import KEY, T0, target

SETTINGS = DeciderSettings(probe_ms=100, longest_probe_ms=350)


def short(placed: int, replicas: int = 5) -> TargetFacts:
    return target(replicas, placed=placed, schedulable=placed)


def whole(placed: int) -> TargetFacts:
    return target(placed, placed=placed)


def after(room: Room | None, the_target: TargetFacts, at_ms: int) -> Room | None:
    return room_after(room, the_target, SETTINGS, T0 + at_ms)


def room(limit: int, **changes: int) -> Room:
    known = Room(target="target-uid", limit=limit, pause_ms=100, probe_ms=T0 + 100)
    return known._replace(**changes)


def test_nothing_is_known_of_a_target_that_has_what_it_wants() -> None:
    assert after(None, whole(3), 0) is None


def test_a_target_found_short_has_the_room_of_what_has_a_place() -> None:
    assert after(None, short(2), 0) == room(2)


def test_a_pause_passes_before_one_more_is_tried() -> None:
    known = room(2)
    assert after(known, whole(2), 99) is known
    found = after(known, whole(2), 100)
    assert found == known._replace(probing=True)


def test_a_probe_that_fails_doubles_the_pause_up_to_its_bound() -> None:
    known: Room | None = room(2)
    pauses = []
    for _ in range(4):
        assert known is not None
        at_ms = known.probe_ms - T0
        known = after(known, whole(2), at_ms)
        assert known is not None
        assert known.probing
        known = after(known, short(2, replicas=3), at_ms + 20)
        assert known is not None
        assert not known.probing
        pauses.append(known.pause_ms)
    assert pauses == [200, 350, 350, 350]


def test_a_probe_that_succeeds_opens_the_next_at_once() -> None:
    known = room(2, pause_ms=350, probing=True)
    found = after(known, whole(3), 130)
    assert found == Room("target-uid", 3, 100, T0 + 130, probing=True)


def test_replicas_that_wait_while_they_are_taken_away_are_no_new_failure() -> None:
    known = room(2)
    assert after(known, short(2), 50) == known
    assert after(known, short(1), 50) == known._replace(limit=1)


def test_scaling_down_is_no_shortage() -> None:
    """Fewer were wanted: that there is room for two is still known."""
    known = room(2)
    assert after(known, whole(1), 50) is known


def test_a_room_that_nobody_tries_is_forgotten() -> None:
    known = room(2, probing=True)
    assert after(known, whole(2), 449) == known
    assert after(known, whole(2), 450) is None


def members(most: int) -> list[PolicyTarget]:
    return [PolicyTarget(key=KEY, min_replicas=0, max_replicas=most)]


def test_a_room_for_all_that_a_policy_allows_is_none() -> None:
    rooms = (room(3),)
    assert rooms_after(rooms, members(3), [whole(3)], SETTINGS, T0) == ()
    assert rooms_after(rooms, members(4), [whole(3)], SETTINGS, T0) is rooms


def test_another_object_of_the_name_starts_afresh() -> None:
    anew = target(2, uid="another", placed=2)
    assert rooms_after((room(2),), members(9), [anew], SETTINGS, T0) == ()


def test_a_role_has_a_room_of_its_own() -> None:
    """Both roles have the uid of their ModelServing."""
    roles = [short(1), short(2)]
    keys = [f"{KEY}/{name}" for name in ("prefill", "decode")]
    both = [
        target(5, key=key, placed=role.placed, schedulable=role.schedulable)
        for key, role in zip(keys, roles, strict=True)
    ]
    mixed = [PolicyTarget(key=key, min_replicas=0, max_replicas=9) for key in keys]
    found = rooms_after((), mixed, both, SETTINGS, T0)
    assert [(each.target, each.limit) for each in found] == [
        ("target-uid/prefill", 1),
        ("target-uid/decode", 2),
    ]


looks = st.lists(
    st.tuples(st.integers(1, 400), st.booleans(), st.integers(0, 6)), min_size=1, max_size=40
)


@given(looks)
def test_between_two_failures_lies_a_whole_pause(steps: list[tuple[int, bool, int]]) -> None:
    known: Room | None = None
    now_ms, failed_ms = 0, None
    for step_ms, is_short, placed in steps:
        now_ms += step_ms
        before = known
        known = after(known, short(placed, placed + 1) if is_short else whole(placed), now_ms)
        if known is None:
            failed_ms = None
            continue
        assert SETTINGS.probe_ms <= known.pause_ms <= SETTINGS.longest_probe_ms
        assert known.probing == (now_ms >= known.probe_ms - T0)
        failed = is_short and (before is None or now_ms >= before.probe_ms - T0)
        if failed:
            if failed_ms is not None:
                assert now_ms - failed_ms >= SETTINGS.probe_ms or before is None
            failed_ms = now_ms
        elif placed > (before.limit if before else 0):
            failed_ms = None
