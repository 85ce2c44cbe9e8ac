"""HTTP to the API server: dicts out, dicts in, errors as problems.

Invariant: every request has time limits, says its content type, and whatever comes back is either
a JSON object of the API or raises `KubeError`. A redirect isn't followed: the API server sends
none, and a login page shall not see the token.
"""

import asyncio
import urllib.request
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Self
from urllib.parse import urlsplit

import aiohttp
import orjson

from inferbus_contracts.errors import ProblemsError
from inferbus_shared.clock import Clock
from inferbus_shared.kube.access import Access
from inferbus_shared.kube.lines import lines_of
from inferbus_shared.kube.metrics import KubeMetrics
from inferbus_shared.kube.outage import Outage
from inferbus_shared.kube.pacing import Pace, back_off_seconds, retry_after_seconds
from inferbus_shared.kube.problems import (
    KubeError,
    PathNotFoundError,
    not_the_api_server,
    refused,
    unreachable,
)
from inferbus_shared.kube.resources import ApiResource
from inferbus_shared.kube.settings import KubeSettings

JSON = "application/json"
JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"

MAX_THROTTLED_TRIES = 10
"""As often a call is sent that the API server throttles (client-go, `rest.Request`)."""

_READ_BUFFER_BYTES = 2**18
_LARGEST_REFUSAL_BYTES = 2**20
_NETWORK = (aiohttp.ClientError, TimeoutError, OSError)

Query = Mapping[str, str]
NO_QUERY: Query = {}


class Transport:
    """The connections to one API server; an async context manager."""

    def __init__(
        self, access: Access, settings: KubeSettings, clock: Clock, metrics: KubeMetrics
    ) -> None:
        self._access = access
        # Asked once: the HTTP library would ask with two threads for each call.
        self._proxy = access.proxy or environment_proxy(access.server)
        self._clock = clock
        self._metrics = metrics
        self._pace = Pace(settings.requests_per_second)
        self._writes = asyncio.Semaphore(settings.max_concurrent_writes)
        self._outage = Outage("the Kubernetes API server", clock)
        self._calls = self._session(settings.max_connections)
        # A watch keeps its connection for minutes: among the calls it would starve them.
        self._watches = self._session(0)
        self._connect_seconds = settings.connect_timeout_seconds
        self._limits = aiohttp.ClientTimeout(
            sock_connect=self._connect_seconds, sock_read=settings.read_timeout_seconds
        )

    def _session(self, limit: int) -> aiohttp.ClientSession:
        connector = aiohttp.TCPConnector(limit=limit, ssl=self._access.tls or True)
        return aiohttp.ClientSession(
            connector=connector,
            read_bufsize=_READ_BUFFER_BYTES,
            cookie_jar=aiohttp.DummyCookieJar(),
            # The API server is near: what compressing saves of the network costs more of the CPU.
            headers={"Accept-Encoding": "identity"},
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._calls.close()
        await self._watches.close()
        # Broken-off TLS connections are gone a round of the loop later; a closed loop has none.
        await asyncio.sleep(0)

    @property
    def outage(self) -> Outage:
        """Whether the API server answers."""
        return self._outage

    async def call(
        self,
        method: str,
        path: str,
        *,
        query: Query = NO_QUERY,
        body: Any = None,
        content_type: str = JSON,
        resource: ApiResource | None = None,
        about: str = "",
    ) -> dict[str, Any]:
        """Send a request and read its answer; raises `KubeError`.

        A throttled call is sent again when the API server allows it: it says with 429 that it did
        nothing. Nothing else is tried again here, because whether a call that got no answer was
        done isn't known.
        """
        data = None if body is None else orjson.dumps(body)
        headers = {"Accept": JSON}
        if data is not None:
            headers["Content-Type"] = content_type
        kind = resource.kind if resource else ""
        for tries in range(1, MAX_THROTTLED_TRIES + 1):
            try:
                if method == "GET":
                    return await self._once(method, path, query, data, headers, kind, about)
                async with self._writes:
                    return await self._once(method, path, query, data, headers, kind, about)
            except KubeError as error:
                if error.status != 429 or tries == MAX_THROTTLED_TRIES:
                    raise
                asked = error.retry_after_seconds
            await self._clock.sleep(back_off_seconds(tries, 0.5) if asked is None else asked)
        raise AssertionError("the last try returns or raises")

    async def _once(
        self,
        method: str,
        path: str,
        query: Query,
        data: bytes | None,
        headers: Mapping[str, str],
        kind: str,
        about: str,
    ) -> dict[str, Any]:
        delay_seconds = self._pace.delay_seconds(self._clock.steady_ms() / 1000)
        if delay_seconds:
            await self._clock.sleep(delay_seconds)
        limits = self._limits
        status = 0
        try:
            async with await self._send(
                self._calls, method, path, query, data, headers, limits
            ) as response:
                body = await response.read()
                status = response.status
                answer = _read(response, body, about)
        except _NETWORK as error:
            failure = unreachable(_reason(error, limits), about)
            self._outage.failed(failure.problems[0])
            raise failure from None
        except KubeError as error:
            self._note(error)
            raise
        finally:
            self._metrics.calls.labels(method, kind, str(status)).inc()
        self._outage.worked()
        return answer

    def _note(self, error: KubeError) -> None:
        """An answer in the API's own words shows that it is there, whatever it says."""
        if error.status:
            self._outage.worked()
        else:
            self._outage.failed(error.problems[0])

    @asynccontextmanager
    async def watch(
        self, path: str, query: Query, silence_seconds: float, kind: str
    ) -> AsyncGenerator[AsyncIterator[bytes]]:
        """The lines of a watch; ends with it. Raises `KubeError` when nothing comes for so long."""
        limits = aiohttp.ClientTimeout(
            sock_connect=self._connect_seconds, sock_read=silence_seconds
        )
        status = 0
        try:
            headers = {"Accept": JSON}
            async with await self._send(
                self._watches, "GET", path, query, None, headers, limits
            ) as response:
                status = response.status
                await self._check_watch(response, kind)
                try:
                    yield lines_of(response.content.iter_any())
                finally:
                    _break_off(response)
        except _NETWORK as error:
            failure = unreachable(_reason(error, limits), kind)
            self._outage.failed(failure.problems[0])
            raise failure from None
        finally:
            self._metrics.calls.labels("WATCH", kind, str(status)).inc()

    async def _check_watch(self, response: aiohttp.ClientResponse, kind: str) -> None:
        if response.status == 200 and response.content_type == JSON:
            self._outage.worked()
            return
        try:
            body = await response.content.read(_LARGEST_REFUSAL_BYTES)
            _read(response, body, kind)
            raise not_the_api_server(response.status, response.content_type, body, kind)
        except KubeError as error:
            self._note(error)
            raise

    async def _send(
        self,
        session: aiohttp.ClientSession,
        method: str,
        path: str,
        query: Query,
        data: bytes | None,
        headers: Mapping[str, str],
        limits: aiohttp.ClientTimeout,
    ) -> aiohttp.ClientResponse:
        """The answer's head; whoever asked reads the rest and closes it."""
        authorization = await self._authorization()
        if authorization:
            headers = {**headers, "Authorization": authorization}
        return await session.request(
            method,
            f"{self._access.server}{path}",
            params=query or None,
            data=data,
            headers=headers,
            timeout=limits,
            allow_redirects=False,
            proxy=self._proxy,
            server_hostname=self._access.server_name,
        )

    async def _authorization(self) -> str:
        try:
            return await self._access.authorization()
        except ProblemsError as error:
            self._outage.failed(error.problems[0])
            raise KubeError(*error.problems) from None


def environment_proxy(server: str) -> str | None:
    """The proxy that `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY` name for a server, if any."""
    address = urlsplit(server)
    if urllib.request.proxy_bypass(address.netloc):
        return None
    return urllib.request.getproxies().get(address.scheme)


def _read(response: aiohttp.ClientResponse, body: bytes, about: str) -> dict[str, Any]:
    """The answer of the API server; raises `KubeError` when it refuses, or isn't the API's."""
    try:
        answer = orjson.loads(body)
    except orjson.JSONDecodeError:
        answer = None
    status = response.status
    if not isinstance(answer, dict):
        if response.content_type != "text/plain" or status not in _PLAIN_TEXT:
            raise not_the_api_server(status, response.content_type, body, about)
        text = body[:1000].decode("utf-8", "replace").strip()
        if status == 404:
            raise PathNotFoundError(text, about)
        answer = {"message": text}
    if status >= 300:
        wait = retry_after_seconds(response.headers.get("Retry-After"))
        raise refused(status, answer, about, wait)
    return answer


_PLAIN_TEXT = (404, 429)
"""The API server answers in plain text where no group serves the path, and where it is so loaded
that it doesn't read the request (k8s.io/apiserver, `NotFoundHandler`, `tooManyRequests`)."""


def _reason(error: BaseException, limits: aiohttp.ClientTimeout) -> str:
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        return f"no connection within {limits.sock_connect:g} s"
    if isinstance(error, aiohttp.ClientConnectorError):
        return f"{error.host}:{error.port}: {error.os_error.strerror or error.os_error}"
    if isinstance(error, TimeoutError):
        return f"nothing came for {limits.sock_read:g} s; whether the call was done isn't known"
    return str(error) or type(error).__name__


def _break_off(response: aiohttp.ClientResponse) -> None:
    """End a watch that is left before its end: to close it in order TLS would wait for an answer,
    longer than its loop may last."""
    connection = response.connection
    if connection is not None and connection.transport is not None:
        connection.transport.abort()
