"""Level-triggered work: keys to look at, each at most once at a time, again after a failure.

A key added while it is being worked on is worked on once more afterwards; adding it ten times
before that makes no difference. A failure is logged and the key comes back with a growing delay; it
never stops the others.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

from inferbus_contracts.errors import ProblemsError

log = logging.getLogger("inferbus.worklist")

KeyT = TypeVar("KeyT", bound=Hashable)

FIRST_DELAY_SECONDS = 0.2
MAX_DELAY_SECONDS = 30.0

Work = Callable[[KeyT], Awaitable[float | None]]
"""Does the work of a key; returns after how many real seconds to look again, None for never."""


class Worklist(Generic[KeyT]):
    """The keys to look at."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._due: dict[KeyT, None] = {}
        self._running: set[KeyT] = set()
        self._failures: dict[KeyT, int] = {}
        self._later: dict[KeyT, asyncio.TimerHandle] = {}
        self._wake = asyncio.Event()

    def add(self, key: KeyT) -> None:
        """Look at a key soon."""
        timer = self._later.pop(key, None)
        if timer is not None:
            timer.cancel()
        self._due[key] = None
        self._wake.set()

    def add_later(self, key: KeyT, seconds: float) -> None:
        """Look at a key after a while, unless it is looked at before."""
        if key in self._due:
            return
        earlier = self._later.pop(key, None)
        if earlier is not None:
            earlier.cancel()
        loop = asyncio.get_running_loop()
        self._later[key] = loop.call_later(seconds, self.add, key)

    @property
    def idle(self) -> bool:
        """Whether nothing is due and nothing runs."""
        return not self._due and not self._running

    async def run(self, work: Work[KeyT], concurrency: int = 1) -> None:
        """Work for ever, on at most `concurrency` keys at a time."""
        slots = asyncio.Semaphore(concurrency)
        async with asyncio.TaskGroup() as tasks:
            try:
                while True:
                    await slots.acquire()
                    key = await self._next()
                    self._running.add(key)
                    task = tasks.create_task(self._work(work, key))
                    task.add_done_callback(lambda _: slots.release())
            finally:
                for timer in self._later.values():
                    timer.cancel()

    async def _next(self) -> KeyT:
        while True:
            for key in self._due:
                if key not in self._running:
                    del self._due[key]
                    return key
            self._wake.clear()
            await self._wake.wait()

    async def _work(self, work: Work[KeyT], key: KeyT) -> None:
        try:
            again = await work(key)
        except ProblemsError as error:
            self._failed(key, str(error))
        except Exception:
            log.exception("work failed", extra={"list": self._name, "key": str(key)})
            self._failed(key, "")
        else:
            self._failures.pop(key, None)
            if again is not None:
                self.add_later(key, again)
        finally:
            self._running.discard(key)
            self._wake.set()

    def _failed(self, key: KeyT, problem: str) -> None:
        count = self._failures[key] = self._failures.get(key, 0) + 1
        delay = min(FIRST_DELAY_SECONDS * 2 ** (count - 1), MAX_DELAY_SECONDS)
        if problem:
            log.warning(
                "work will be tried again",
                extra={"list": self._name, "key": str(key), "seconds": delay, "problem": problem},
            )
        with contextlib.suppress(RuntimeError):  # the loop is closing
            self.add_later(key, delay)
