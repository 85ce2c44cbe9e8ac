"""HTTP to the API server: dicts out, dicts in, errors as problems.

Invariant: every request has time limits, says its content type, and whatever comes back is either
a JSON object of the API or raises `KubeError`. A redirect isn't followed: the API server sends
none, and a login page shall not see the token.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Self
from urllib.parse import urlencode

import orjson

from inferbus_contracts.errors import ProblemsError
from inferbus_shared.clock import Clock
from inferbus_shared.http_client.answer import Answer
from inferbus_shared.http_client.client import HttpClient
from inferbus_shared.http_client.failures import NoAnswerError, NotSentError
from inferbus_shared.http_client.request import RequestWriter, header_lines
from inferbus_shared.kube.access import Access, route_to
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
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"
"""Merges conditions by their types; the API server knows it for its own kinds alone."""

MAX_THROTTLED_TRIES = 10
"""As often a call is sent that the API server throttles (client-go, `rest.Request`)."""

_HEADERS = {
    "Accept": JSON,
    # The API server is near: what compressing saves of the network costs more of the CPU.
    "Accept-Encoding": "identity",
    "User-Agent": "inferbus",
}
_CONTENT_TYPES = {
    kind: header_lines({"Content-Type": kind})
    for kind in (JSON, JSON_PATCH, MERGE_PATCH, APPLY_PATCH, STRATEGIC_MERGE_PATCH)
}
_IDEMPOTENT = frozenset({"GET", "DELETE"})
_LARGEST_REFUSAL_BYTES = 2**20

Query = Mapping[str, str]
NO_QUERY: Query = {}


class Transport:
    """The connections to one API server; an async context manager."""

    def __init__(
        self, access: Access, settings: KubeSettings, clock: Clock, metrics: KubeMetrics
    ) -> None:
        """Raises `ProblemsError` (BAD_SETTING) for a proxy that isn't one of HTTP."""
        self._access = access
        self._clock = clock
        self._metrics = metrics
        self._pace = Pace(settings.requests_per_second)
        self._writes = asyncio.Semaphore(settings.max_concurrent_writes)
        self._outage = Outage("the Kubernetes API server", clock)
        self._read_seconds = settings.read_timeout_seconds
        self._authorized_by = ""
        self._authorization_line = b""
        route = route_to(access)
        self._requests = RequestWriter(route, _HEADERS)
        self._http = HttpClient(
            route,
            max_connections=settings.max_connections,
            connect_timeout_seconds=settings.connect_timeout_seconds,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.close()

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
        kind = resource.kind if resource else ""
        more = b"" if data is None else _CONTENT_TYPES[content_type]
        target = f"{path}?{urlencode(query)}" if query else path
        for tries in range(1, MAX_THROTTLED_TRIES + 1):
            try:
                if method == "GET":
                    return await self._once(method, target, more, data, kind, about)
                async with self._writes:
                    return await self._once(method, target, more, data, kind, about)
            except KubeError as error:
                if error.status != 429 or tries == MAX_THROTTLED_TRIES:
                    raise
                asked = error.retry_after_seconds
            await self._clock.sleep(back_off_seconds(tries, 0.5) if asked is None else asked)
        raise AssertionError("the last try returns or raises")

    async def _once(
        self, method: str, target: str, headers: bytes, data: bytes | None, kind: str, about: str
    ) -> dict[str, Any]:
        delay_seconds = self._pace.delay_seconds(self._clock.steady_ms() / 1000)
        if delay_seconds:
            await self._clock.sleep(delay_seconds)
        status = 0
        try:
            headers += await self._authorization()
            request = self._requests.request(method, target, headers, data)
            answer, body = await self._http.fetch(
                request, self._read_seconds, is_idempotent=method in _IDEMPOTENT
            )
            status = answer.status
            document = _read(answer, body, about)
        except NotSentError as error:
            raise unreachable(str(error), about) from None
        except NoAnswerError as error:
            raise self._unreachable(error, about) from None
        except KubeError as error:
            self._note(error)
            raise
        finally:
            self._metrics.called(method, kind, status)
        self._outage.worked()
        return document

    def _unreachable(self, error: NoAnswerError, about: str) -> KubeError:
        failure = unreachable(str(error), about)
        self._outage.failed(failure.problems[0])
        return failure

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
        status = 0
        try:
            headers = await self._authorization()
            request = self._requests.request("GET", f"{path}?{urlencode(query)}", headers, None)
            async with self._http.stream(request, silence_seconds) as answer:
                status = answer.status
                await self._check_watch(answer, kind)
                yield lines_of(answer.chunks())
        except NoAnswerError as error:
            raise self._unreachable(error, kind) from None
        finally:
            self._metrics.called("WATCH", kind, status)

    async def _check_watch(self, answer: Answer, kind: str) -> None:
        if answer.status == 200 and answer.content_type == JSON:
            self._outage.worked()
            return
        try:
            body = await answer.beginning(_LARGEST_REFUSAL_BYTES)
            _read(answer, body, kind)
            raise not_the_api_server(answer.status, answer.content_type, body, kind)
        except KubeError as error:
            self._note(error)
            raise

    async def _authorization(self) -> bytes:
        """The header, if there is one."""
        try:
            value = await self._access.authorization()
        except ProblemsError as error:
            self._outage.failed(error.problems[0])
            raise KubeError(*error.problems) from None
        if value != self._authorized_by:
            self._authorized_by = value
            self._authorization_line = header_lines({"Authorization": value}) if value else b""
        return self._authorization_line


def _read(response: Answer, body: bytes, about: str) -> dict[str, Any]:
    """What the API server answered; raises `KubeError` when it refuses, or isn't the API's."""
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
        wait = retry_after_seconds(response.retry_after)
        raise refused(status, answer, about, wait)
    return answer


_PLAIN_TEXT = (404, 429)
"""The API server answers in plain text where no group serves the path, and where it is so loaded
that it doesn't read the request (k8s.io/apiserver, `NotFoundHandler`, `tooManyRequests`)."""
