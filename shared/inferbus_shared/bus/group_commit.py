"""Events that wait at the same time are stored together, because every commit is synced to disk.

For facts that don't depend on each other, all of one stream that accepts atomic batches. A batch
costs the server about as much as `FEWEST_TOGETHER` messages, whatever its length (ADR 0018), so few
are stored one by one. Invariant: `publish` returns once its events are stored; what a batch is
refused for is found by storing them one by one, under the ids that they have.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from inferbus_contracts.errors import Problem, ProblemsError
from inferbus_shared.bus.bus import Bus
from inferbus_shared.bus.messages import Outgoing
from inferbus_shared.bus.store import MAX_BATCH, WrongSequenceError

FEWEST_TOGETHER = 24


@dataclass(eq=False, slots=True)
class _Waiting:
    """What one caller waits for."""

    messages: Sequence[Outgoing]
    problems: list[Problem] = field(default_factory=list)
    done: bool = False


class GroupCommit:
    """Stores in one go what came while other events were being stored."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._waiting: dict[_Waiting, None] = {}
        self._turn = asyncio.Lock()

    async def publish(self, messages: Sequence[Outgoing]) -> None:
        """Store these events, whatever becomes of some of them.

        Raises `ProblemsError` with the problems of those that couldn't be stored.
        """
        own = _Waiting(messages)
        self._waiting[own] = None
        try:
            async with self._turn:
                while not own.done:
                    await self._store(self._next_group())
        finally:
            self._waiting.pop(own, None)
        if own.problems:
            raise ProblemsError(*own.problems)

    def _next_group(self) -> list[_Waiting]:
        """Who waited longest, as many as one batch takes."""
        group: list[_Waiting] = []
        size = 0
        for one in self._waiting:
            size += len(one.messages)
            if group and size > MAX_BATCH:
                break
            group.append(one)
        return group

    async def _store(self, group: Sequence[_Waiting]) -> None:
        together = [message for one in group for message in one.messages]
        if not FEWEST_TOGETHER <= len(together) <= MAX_BATCH or not await self._commit(together):
            await asyncio.gather(
                *(self._store_alone(one, message) for one in group for message in one.messages)
            )
        for one in group:
            one.done = True
            self._waiting.pop(one, None)

    async def _commit(self, together: Sequence[Outgoing]) -> bool:
        """Whether the batch is stored; one of it may have been stored before, or can't be."""
        try:
            await self._bus.commit(together)
        except (WrongSequenceError, ProblemsError):
            return False
        return True

    async def _store_alone(self, one: _Waiting, message: Outgoing) -> None:
        try:
            await self._bus.publish(message)
        except ProblemsError as error:
            one.problems += error.problems
