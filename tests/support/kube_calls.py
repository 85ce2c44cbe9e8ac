"""The Kubernetes API by plain HTTP, for tests: what was sent and what came back, nothing between.

Not the project's client: that one is under test, and must not be judged by itself.
"""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import aiohttp

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"

Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer; `body` is {} where it was no JSON."""

    code: int
    body: Document
    text: str
    headers: Mapping[str, str]

    @property
    def ok(self) -> bool:
        return 200 <= self.code < 300

    @property
    def items(self) -> list[Document]:
        found: list[Document] = self.body["items"]
        return found

    @property
    def names(self) -> list[str]:
        return [item["metadata"]["name"] for item in self.items]

    @property
    def revision(self) -> str:
        return str(self.body["metadata"]["resourceVersion"])


def path_of(
    plural: str,
    namespace: str = "",
    name: str = "",
    subresource: str = "",
    *,
    group: str = "",
    version: str = "v1",
) -> str:
    """The path of a resource, an object, or a subresource."""
    parts = ["/apis", group, version] if group else ["/api", version]
    if namespace:
        parts += ["namespaces", namespace]
    parts += [part for part in (plural, name, subresource) if part]
    return "/".join(parts)


class WatchLines:
    """The events of one watch, in order."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self.response = response

    async def event(self, timeout_seconds: float = 15.0) -> Document | None:
        """The next event; None when the stream ended. Raises `TimeoutError`."""
        async with asyncio.timeout(timeout_seconds):
            line = await self.response.content.readline()
        return json.loads(line) if line.strip() else None

    async def events(self, number: int) -> list[Document]:
        """The next events, so many."""
        found = [await self.event() for _ in range(number)]
        return [event for event in found if event is not None]

    async def rest(self, timeout_seconds: float = 15.0) -> list[Document]:
        """Every event until the stream ends."""
        events = []
        while (event := await self.event(timeout_seconds)) is not None:
            events.append(event)
        return events


class KubeCalls:
    """Calls with one user's token, over connections of its own."""

    def __init__(self, url: str, token: str, ca_file: Path | None = None) -> None:
        self._url = url
        self._headers = {"Authorization": f"Bearer {token}", "User-Agent": "kube-calls/1"}
        self._tls = ssl.create_default_context(cafile=str(ca_file)) if ca_file else True
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> "KubeCalls":
        self._session = aiohttp.ClientSession(
            headers=self._headers,
            connector=aiohttp.TCPConnector(ssl=self._tls, limit=0),
            timeout=aiohttp.ClientTimeout(total=60),
            read_bufsize=2**22,
        )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._session is not None
        await self._session.close()
        # Broken-off TLS connections are gone a round of the loop later; a closed loop has none.
        await asyncio.sleep(0)

    async def call(
        self, method: str, path: str, body: Any = None, *, content_type: str = JSON, **query: str
    ) -> Answer:
        assert self._session is not None
        data = None if body is None else json.dumps(body, separators=(",", ":")).encode()
        headers = {"Content-Type": content_type} if data is not None else {}
        async with self._session.request(
            method, self._url + path, data=data, headers=headers, params=query
        ) as response:
            text = await response.text()
            is_json = response.content_type == JSON
            return Answer(
                response.status, json.loads(text) if is_json else {}, text, response.headers
            )

    async def get(self, path: str, **query: str) -> Answer:
        return await self.call("GET", path, **query)

    async def post(self, path: str, body: Document, **query: str) -> Answer:
        return await self.call("POST", path, body, **query)

    async def put(self, path: str, body: Document, **query: str) -> Answer:
        return await self.call("PUT", path, body, **query)

    async def delete(self, path: str, options: Document | None = None, **query: str) -> Answer:
        return await self.call("DELETE", path, options, **query)

    async def merge(self, path: str, body: Document, **query: str) -> Answer:
        return await self.call("PATCH", path, body, content_type=MERGE_PATCH, **query)

    async def json_patch(self, path: str, body: list[Document], **query: str) -> Answer:
        return await self.call("PATCH", path, body, content_type=JSON_PATCH, **query)

    async def strategic(self, path: str, body: Document, **query: str) -> Answer:
        return await self.call("PATCH", path, body, content_type=STRATEGIC_PATCH, **query)

    async def apply(self, path: str, body: Document, *, manager: str, **query: str) -> Answer:
        query["fieldManager"] = manager
        return await self.call("PATCH", path, body, content_type=APPLY_PATCH, **query)

    @asynccontextmanager
    async def watch(self, path: str, **query: str) -> AsyncIterator[WatchLines]:
        """An open watch; the events come by `event`."""
        assert self._session is not None
        params = {"watch": "true", **query}
        async with self._session.get(self._url + path, params=params) as response:
            assert response.status == 200, await response.text()
            try:
                yield WatchLines(response)
            finally:
                _break_off(response)


def _break_off(response: aiohttp.ClientResponse) -> None:
    """End a watch before its end; in order, TLS would wait for an answer, longer than a test."""
    connection = response.connection
    if connection is not None and connection.transport is not None:
        connection.transport.abort()
