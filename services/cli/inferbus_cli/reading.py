"""Reading events one by one, where one that can't be read doesn't hide the others.

Timers that haven't fired stand in the same streams; they are no events and passed over.
"""

from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass

from inferbus_contracts.base import EventData
from inferbus_contracts.errors import Problem, ProblemsError
from inferbus_contracts.topology import is_timer
from inferbus_shared.bus.bus import Bus
from inferbus_shared.bus.follow import Follower
from inferbus_shared.bus.messages import Delivered, Received


@dataclass(frozen=True, slots=True)
class Read:
    """One message, and the event in it or what is wrong with it."""

    message: Delivered
    event: Received[EventData] | None
    problem: Problem | None = None


async def read(bus: Bus, message: Delivered) -> Read:
    """The event in a message, its body fetched from wherever it is."""
    try:
        return Read(message, await bus.read(message))
    except ProblemsError as error:
        return Read(message, None, error.problems[0])


async def standing(bus: Bus, follower: Follower) -> AsyncIterator[Read]:
    """What stands in the stream, and then an end."""
    messages = follower.snapshot()
    async with aclosing(messages):  # type: ignore[type-var]
        async for message in messages:
            if not is_timer(message.subject):
                yield await read(bus, message)


async def following(bus: Bus, follower: Follower) -> AsyncIterator[Read]:
    """What stands in the stream, and everything after that."""
    messages = follower.messages()
    async with aclosing(messages):
        async for message in messages:
            if not is_timer(message.subject):
                yield await read(bus, message)
