"""Pages over HTTP: a connection per pod and port that is kept between rounds.

Invariant: a page is asked for once, and once more only where a kept connection turned out to be
closed; a cancelled request leaves no connection behind.
"""

import asyncio

from inferbus_metrics_collector.adapters_http import (
    PageConnection,
    StaleConnectionError,
    request_bytes,
)
from inferbus_metrics_collector.page_memory import PageMemory
from inferbus_metrics_collector.policy_access import address_problem
from inferbus_metrics_collector.ports import Endpoint, ScrapeError

IDLE_SECONDS = 90.0
"""A connection that nobody needed for that long belongs to a pod that is gone."""


class HttpPages:
    """Gets pages; `close` when done."""

    def __init__(self, memory: PageMemory, *, loopback: bool = True) -> None:
        """A page that `memory` has no room for is refused as soon as that is known.

        `loopback`: whether pods may be on this machine's own addresses.
        """
        self._memory = memory
        self._loopback = loopback
        self._idle: dict[tuple[str, int], tuple[PageConnection, float]] = {}
        self._swept = 0.0

    async def get(self, endpoint: Endpoint) -> bytes:
        """The page; raises `ScrapeError`. Has no time limit of its own."""
        now = asyncio.get_running_loop().time()
        if now - self._swept > IDLE_SECONDS / 3:
            self._sweep(now)
        kept, _ = self._idle.pop(endpoint[:2], (None, 0.0))
        if kept is not None and kept.is_idle:
            try:
                return await self._ask(kept, endpoint)
            except StaleConnectionError:
                pass
        return await self._ask(await self._connect(endpoint), endpoint)

    def close(self) -> None:
        """Close all kept connections."""
        for connection, _ in self._idle.values():
            connection.close()
        self._idle.clear()

    async def _ask(self, connection: PageConnection, endpoint: Endpoint) -> bytes:
        try:
            page = await connection.ask(request_bytes(endpoint))
        except BaseException:
            connection.close()
            raise
        if connection.is_idle:
            self._keep(connection, endpoint)
        return page

    async def _connect(self, endpoint: Endpoint) -> PageConnection:
        refusal = address_problem(endpoint.address, loopback=self._loopback)
        if refusal:
            raise ScrapeError(refusal)
        try:
            _, connection = await asyncio.get_running_loop().create_connection(
                lambda: PageConnection(self._memory), endpoint.address, endpoint.port
            )
        except OSError as error:
            raise ScrapeError(f"cannot connect: {error.strerror or error}") from error
        return connection

    def _keep(self, connection: PageConnection, endpoint: Endpoint) -> None:
        other, _ = self._idle.pop(endpoint[:2], (None, 0.0))
        if other is not None:
            other.close()
        self._idle[endpoint[:2]] = (connection, asyncio.get_running_loop().time())

    def _sweep(self, now: float) -> None:
        self._swept = now
        for place, (connection, since) in tuple(self._idle.items()):
            if now - since > IDLE_SECONDS or not connection.is_idle:
                del self._idle[place]
                connection.close()
