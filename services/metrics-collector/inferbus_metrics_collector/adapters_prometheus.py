"""Instant queries to Prometheus servers.

Invariant: an answer comes within the deadline and the size limit or not at all; no redirect is
followed, no proxy used, and no name may lead to a forbidden address, whatever DNS says.
"""

import errno
import socket

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult

from inferbus_metrics_collector.policy_access import address_problem, server_url_problem
from inferbus_metrics_collector.policy_prometheus import instant_value
from inferbus_metrics_collector.ports import ScrapeError

MOST_ANSWER_BYTES = 1024 * 1024
_CONNECTIONS_PER_SERVER = 8


class CheckedResolver(AbstractResolver):
    """Resolves names, and refuses those that lead where no request may go."""

    def __init__(self, *, loopback: bool) -> None:
        self._resolver = aiohttp.ThreadedResolver()
        self._loopback = loopback

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """The addresses of `host`; raises OSError when one of them is forbidden."""
        found = await self._resolver.resolve(host, port, family)
        for result in found:
            refusal = address_problem(result["host"], loopback=self._loopback)
            if refusal:
                raise PermissionError(errno.EACCES, refusal)
        return found

    async def close(self) -> None:
        """Part of aiohttp's interface."""
        await self._resolver.close()


class PrometheusQueries:
    """Asks Prometheus servers; `close` when done."""

    def __init__(self, timeout_seconds: float, *, loopback: bool = True) -> None:
        """`timeout_seconds`: of one query, real time, connecting included; `loopback`: whether
        servers may be on this machine."""
        self._timeout_seconds = timeout_seconds
        self._loopback = loopback
        self._session: aiohttp.ClientSession | None = None

    async def query(self, server_url: str, query: str) -> float:
        """The value of an instant query now; raises `ScrapeError`."""
        refusal = server_url_problem(server_url, loopback=self._loopback)
        if refusal:
            raise ScrapeError(refusal)
        url = f"{server_url}/api/v1/query"
        try:
            async with self._open().get(
                url, params={"query": query}, allow_redirects=False
            ) as response:
                body = await _read(response)
                status = response.status
        except TimeoutError:
            raise ScrapeError(f"no answer within {self._timeout_seconds:g} s") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise ScrapeError(f"cannot query: {error}") from error
        if 300 <= status < 400:
            raise ScrapeError(f"HTTP status {status}")
        try:
            return instant_value(body)
        except ValueError as error:
            shown = "" if status == 200 else f"HTTP status {status}: "
            raise ScrapeError(f"{shown}{error}") from None

    async def close(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                timeout=aiohttp.ClientTimeout(total=self._timeout_seconds),
                connector=aiohttp.TCPConnector(
                    resolver=CheckedResolver(loopback=self._loopback),
                    limit_per_host=_CONNECTIONS_PER_SERVER,
                ),
                cookie_jar=aiohttp.DummyCookieJar(),
                headers={"Accept": "application/json"},
            )
        return self._session


async def _read(response: aiohttp.ClientResponse) -> bytes:
    body = bytearray()
    async for part in response.content.iter_any():
        body += part
        if len(body) > MOST_ANSWER_BYTES:
            raise ScrapeError(f"the answer is larger than {MOST_ANSWER_BYTES} bytes")
    return bytes(body)
