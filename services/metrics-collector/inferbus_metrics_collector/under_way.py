"""Work that several wait for is done once.

Invariant: whoever asks while it is under way gets the same outcome; whoever asks later starts anew.
"""

import asyncio
from collections.abc import Callable, Coroutine, Hashable
from typing import Any, Generic, TypeVar

KeyT = TypeVar("KeyT", bound=Hashable)
OutcomeT = TypeVar("OutcomeT")


class UnderWay(Generic[KeyT, OutcomeT]):
    """What is being done right now, by key."""

    def __init__(self) -> None:
        self._tasks: dict[KeyT, asyncio.Task[OutcomeT]] = {}

    def join(
        self, key: KeyT, start: Callable[[], Coroutine[Any, Any, OutcomeT]]
    ) -> asyncio.Task[OutcomeT]:
        """The work on `key`, begun by `start` unless it is under way; await it for the outcome."""
        task = self._tasks.get(key)
        if task is None:
            task = asyncio.create_task(start())
            self._tasks[key] = task
            task.add_done_callback(lambda _: self._tasks.pop(key, None))
        return task
