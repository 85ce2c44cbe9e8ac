"""Facts that a service keeps in memory: the last of each key, and every change after that."""

import asyncio
import inspect
from collections.abc import Callable, Iterable
from typing import Any

from inferbus_contracts.base import EventData
from inferbus_shared.bus.follow import Follower
from inferbus_shared.bus.messages import Received
from inferbus_shared.bus.service import Runtime

Take = Callable[[Received[EventData]], object]
"""Folds one fact in; may be a coroutine function."""


async def fold(runtime: Runtime[Any], event_types: Iterable[str], take: Take) -> None:
    """Give `take` the facts of these types, in the background from now on.

    Returns once everything that stands on the bus has been taken. A fact that can't be read goes to
    the dead letters and is left out: one bad fact must not blind a service to the others.
    """
    followers = [runtime.bus.follow(event_type) for event_type in event_types]
    for event_type, follower in zip(event_types, followers, strict=True):
        runtime.background(_take_all(runtime, follower, take), f"facts {event_type}")
    await asyncio.gather(*(follower.caught_up() for follower in followers))


async def _take_all(runtime: Runtime[Any], follower: Follower, take: Take) -> None:
    async for event in runtime.bus.events(follower):
        taken = take(event)
        if inspect.isawaitable(taken):
            await taken
