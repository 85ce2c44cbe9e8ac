"""Load on a router: clients that ask again as soon as they are answered.

Every request has a connection of its own, so each of them also asks whether the router accepts
connections at all. Invariant: a request is counted once, under what became of it; one that was cut
off by the end of the load is not counted.
"""

import asyncio
import contextlib
import dataclasses
import json
from collections import Counter
from collections.abc import AsyncIterator

import aiohttp

REQUEST_SECONDS = 30.0
REFUSED_PAUSE_SECONDS = 0.01
"""Before a client that could not connect tries again."""


@dataclasses.dataclass
class LoadCounts:
    """What became of the requests so far."""

    statuses: Counter[int] = dataclasses.field(default_factory=Counter)
    """Complete answers by status."""
    broken: int = 0
    """Connected, and then no complete answer."""
    refused: int = 0
    """Not even connected."""
    reasons: Counter[str] = dataclasses.field(default_factory=Counter)
    """What is known of those that were not answered with 200."""

    @property
    def answered(self) -> int:
        """Complete answers, of any status."""
        return self.statuses.total()

    @property
    def good(self) -> int:
        """Complete answers with status 200."""
        return self.statuses[200]

    @property
    def bad(self) -> int:
        """Everything else."""
        return self.answered - self.good + self.broken + self.refused


class Load:
    """Clients of one router; `running_load` makes and ends them."""

    def __init__(self, router: str, session: aiohttp.ClientSession) -> None:
        self.counts = LoadCounts()
        self._url = f"{router}/v1/completions"
        self._session = session
        self._wanted: dict[bytes, int] = {}
        self._clients: dict[tuple[bytes, int], asyncio.Task[None]] = {}

    def clients(self, model: str, number: int, *, max_tokens: int = 16) -> None:
        """From now on that many clients ask for completions of that length.

        What they ask is the same for all; clients that are too many finish their request first.
        """
        body = json.dumps({"model": model, "prompt": "hello", "max_tokens": max_tokens}).encode()
        self._wanted[body] = number
        for index in range(number):
            client = self._clients.get((body, index))
            if client is None or client.done():
                self._clients[body, index] = asyncio.create_task(self._client(body, index))

    async def stop(self) -> None:
        """Cut everything off."""
        for client in self._clients.values():
            client.cancel()
        results = await asyncio.gather(*self._clients.values(), return_exceptions=True)
        defects = [one for one in results if isinstance(one, Exception)]
        if defects:
            raise defects[0]

    async def _client(self, body: bytes, index: int) -> None:
        while index < self._wanted[body]:
            await self._ask(body)

    async def _ask(self, body: bytes) -> None:
        headers = {"content-type": "application/json"}
        try:
            async with self._session.post(self._url, data=body, headers=headers) as answer:
                text = await answer.text()
        except aiohttp.ClientConnectorError as error:
            self.counts.refused += 1
            self.counts.reasons[repr(error.os_error)] += 1
            await asyncio.sleep(REFUSED_PAUSE_SECONDS)
        except (aiohttp.ClientError, TimeoutError) as error:
            self.counts.broken += 1
            self.counts.reasons[type(error).__name__] += 1
        else:
            self.counts.statuses[answer.status] += 1
            if answer.status != 200:
                self.counts.reasons[f"{answer.status} {text[:200]}"] += 1


@contextlib.asynccontextmanager
async def running_load(router: str) -> AsyncIterator[Load]:
    """Clients of the router at this URL, none at first, all gone afterwards."""
    connector = aiohttp.TCPConnector(force_close=True, limit=0)
    timeout = aiohttp.ClientTimeout(total=REQUEST_SECONDS)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:
        load = Load(router, session)
        try:
            yield load
        finally:
            await load.stop()
