"""How many replicas of a target of a mix can be scheduled, learned from those that wait in vain.

A replica that no node has taken up for `unplaced_ms` says that its accelerators are gone: the
target's room is what has a place, and the optimizer falls back to other targets at once. After a
pause the room is probed with one replica more, which nobody counts on; a failed probe doubles the
pause, up to a bound, and each that succeeds opens the next one at once (autoscaling spec 7.1
"Placement"). Invariants: as long as a room is known, one replica at most is asked for beyond it, so
that two targets never take turns; it is forgotten once nobody tried it for the longest pause; and
where nothing changed, the room is the same object. All times are virtual milliseconds.
"""

from collections.abc import Iterable
from typing import NamedTuple

from inferbus_autoscaler.facts import DeciderSettings, PolicyTarget, TargetFacts


class Room(NamedTuple):
    """What is known of a target that was found short of accelerators; an array in JSON."""

    target: str
    """Its identity."""
    limit: int
    """Replicas that can be scheduled, as far as is known."""
    pause_ms: int
    """Between the last failure and the next probe."""
    probe_ms: int
    """When one more may be tried."""
    probing: bool = False
    """One more may be tried now."""


def rooms_after(
    rooms: tuple[Room, ...],
    members: Iterable[PolicyTarget],
    targets: Iterable[TargetFacts],
    settings: DeciderSettings,
    now_ms: int,
) -> tuple[Room, ...]:
    """The rooms of a mix after a look at its targets; the same object where nothing changed."""
    known = {room.target: room for room in rooms}
    facts = {target.key: target for target in targets}
    found = []
    for member in members:
        target = facts.get(member.key)
        if target is None:
            continue
        room = room_after(known.get(target.identity), target, settings, now_ms)
        if room is not None and room.limit < member.max_replicas:
            found.append(room)
    return rooms if tuple(found) == rooms else tuple(found)


def room_after(
    room: Room | None, target: TargetFacts, settings: DeciderSettings, now_ms: int
) -> Room | None:
    """The room of one target; None where it isn't known to be short."""
    if target.schedulable is not None:
        return _short(room, target, target.schedulable, settings, now_ms)
    if room is None:
        return None
    if target.placed > room.limit:
        return room._replace(
            limit=target.placed,
            pause_ms=settings.probe_ms,
            probe_ms=now_ms,
            probing=True,
        )
    if now_ms - room.probe_ms >= settings.longest_probe_ms:
        return None
    return room._replace(probing=True) if now_ms >= room.probe_ms else room


def _short(
    room: Room | None, target: TargetFacts, limit: int, settings: DeciderSettings, now_ms: int
) -> Room:
    """After replicas were found to wait in vain."""
    if room is not None and now_ms < room.probe_ms:
        return room._replace(limit=limit)
    pause_ms = settings.probe_ms
    if room is not None:
        pause_ms = min(2 * room.pause_ms, settings.longest_probe_ms)
    return Room(
        target=target.identity,
        limit=limit,
        pause_ms=pause_ms,
        probe_ms=now_ms + pause_ms,
    )


def room_of(rooms: Iterable[Room], target: TargetFacts) -> Room | None:
    """The room of one target."""
    return next((room for room in rooms if room.target == target.identity), None)
