"""Requests that an engine goes on running until they are given up: a gauge set by hand.

Invariant: an engine runs as many of them as were asked for last, or as many as still have to be
accepted or noticed as gone.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import aiohttp

TOKENS = 4096
"""So many that none ends by itself within a benchmark; an a10 needs a minute for them."""


class HeldRequests:
    """Those of one benchmark."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session
        self._tasks: dict[str, list[asyncio.Task[None]]] = {}

    def hold(self, engine_url: str, model: str, number: int) -> None:
        """From now on that many requests run on an engine."""
        tasks = self._tasks.setdefault(engine_url, [])
        while len(tasks) > number:
            tasks.pop().cancel()
        while len(tasks) < number:
            tasks.append(asyncio.create_task(self._ask(engine_url, model)))

    async def stop(self) -> None:
        """Give all of them up; raises what an engine answered instead of running them."""
        tasks = [task for held in self._tasks.values() for task in held]
        for task in tasks:
            task.cancel()
        for result in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(result, Exception):
                raise result

    async def _ask(self, engine_url: str, model: str) -> None:
        body = {"model": model, "prompt": "hello", "max_tokens": TOKENS, "ignore_eos": True}
        async with self._session.post(f"{engine_url}/v1/completions", json=body) as answer:
            raise AssertionError(f"a held request ended with {answer.status}")


@contextlib.asynccontextmanager
async def held_requests() -> AsyncIterator[HeldRequests]:
    """None at first, none afterwards."""
    connector = aiohttp.TCPConnector(limit=0)
    timeout = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:
        held = HeldRequests(session)
        try:
            yield held
        finally:
            await held.stop()
