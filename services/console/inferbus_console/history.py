"""Reading back in the log: decisions older than those in memory, and what became of each."""

import logging

from inferbus_console.decisions import Decision, read_decision
from inferbus_contracts.base import EventData
from inferbus_contracts.catalog import EVENTS
from inferbus_contracts.errors import ProblemsError
from inferbus_contracts.events.scaling import ScalingApplied
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.subjects import subject
from inferbus_shared.bus.bus import Bus
from inferbus_shared.bus.follow import Follower, Start
from inferbus_shared.bus.messages import Received
from inferbus_shared.clock import real_now_ms

log = logging.getLogger("inferbus.console")

HOUR_MS = 3_600_000
_LOOK_BACK_HOURS = (1, 24, 24 * 14)
"""How far back is looked before all that is kept is read; a target decides about six times an hour
when nothing moves."""


async def stored_decisions(bus: Bus, key: ObjectKey, event_type: str, limit: int) -> list[Decision]:
    """The newest `limit` decisions of a key, newest first; fewer where the log has no more."""
    now_ms = real_now_ms()
    for hours in _LOOK_BACK_HOURS:
        found = await _read(bus, key, event_type, Start.time(now_ms - hours * HOUR_MS))
        if len(found) >= limit:
            return found[:limit]
    return (await _read(bus, key, event_type, Start.everything()))[:limit]


async def stored_answers(bus: Bus, target: ObjectKey) -> list[Received[EventData]]:
    """What became of the decisions about a target, oldest first, as far as the log goes back."""
    follower = _follower(bus, ScalingApplied.event_type, target, Start.everything())
    return await _events(bus, follower)


async def _read(bus: Bus, key: ObjectKey, event_type: str, start: Start) -> list[Decision]:
    follower = _follower(bus, event_type, key, start)
    events = await _events(bus, follower)
    decisions = [read_decision(event) for event in reversed(events)]
    return [decision for decision in decisions if decision is not None]


async def _events(bus: Bus, follower: Follower) -> list[Received[EventData]]:
    """What stands there; an event that can't be read is left out, its reader told of it."""
    found = []
    async for message in follower.snapshot():
        try:
            found.append(await bus.read(message))
        except ProblemsError as error:
            log.warning("an old event cannot be read", extra={"problem": str(error)})
    return found


def _follower(bus: Bus, event_type: str, key: ObjectKey, start: Start) -> Follower:
    return Follower(bus.connection, EVENTS[event_type].stream, subject(event_type, key), start)
