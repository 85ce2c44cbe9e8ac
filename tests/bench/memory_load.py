"""Engines and clients that make a router remember things, if it does: nothing comes twice.

Engines work, fail in every way, or aren't there; clients bring ever new model names, request ids,
prompts, paths and connections. Cheap on purpose, so that millions of requests can be sent.
"""

import asyncio
import json
from collections.abc import Callable, Mapping
from itertools import count

MODELS = 20
"""Routes to engines that work; others lead to those that don't."""
BATCH = 8
"""Requests that a client sends ahead on its connection."""
BATCHES_OF_A_CONNECTION = 50

_JSON = json.dumps(
    {"id": "x", "choices": [{}], "usage": {"prompt_tokens": 30, "completion_tokens": 5}}
).encode()
_EVENT = b'data: {"choices":[{"delta":{"content":"word"}}]}\n\n'
_CHUNK = b"%x\r\n%b\r\n" % (len(_EVENT), _EVENT)
_STREAM_HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
)
_ANSWERS: Mapping[str, bytes] = {
    "works": b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b"
    % (len(_JSON), _JSON),
    "streams": _STREAM_HEAD + _CHUNK * 3 + b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n",
    "busy": b"HTTP/1.1 503 Busy\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n",
    "garbage": b"\x16\x03\x01 no HTTP\r\n\r\n",
    "closes": b"",
    "breaks": _STREAM_HEAD + _CHUNK,
}
BREAKING = frozenset({"garbage", "closes", "breaks"})
"""Engines that close the connection behind their answer."""
KINDS = tuple(_ANSWERS)


class EngineConnection(asyncio.Protocol):
    """Answers every request of one connection alike."""

    def __init__(self, kind: str) -> None:
        self._answer = _ANSWERS[kind]
        self._closes = kind in BREAKING
        self._unread = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        data = self._unread + data if self._unread else data
        while (end := data.find(b"\r\n\r\n")) >= 0:
            start = data.index(b"content-length: ") + 16
            size = end + 4 + int(data[start : data.index(b"\r", start)])
            if len(data) < size:
                break
            data = data[size:]
            self._transport.write(self._answer)
            if self._closes:
                self._transport.close()
        self._unread = data


async def start_engines() -> tuple[dict[str, int], list[asyncio.Server]]:
    """One engine of each kind; their ports, and what to close."""
    loop = asyncio.get_running_loop()
    servers = {}
    for kind in KINDS:
        servers[kind] = await loop.create_server(_factory(kind), "127.0.0.1", 0)
    ports = {kind: server.sockets[0].getsockname()[1] for kind, server in servers.items()}
    return ports, list(servers.values())


def _factory(kind: str) -> Callable[[], EngineConnection]:
    return lambda: EngineConnection(kind)


class Load:
    """Requests to a router until enough were answered; each differs from every other."""

    def __init__(self, port: int) -> None:
        self.answered = 0
        self._port = port
        self._numbers = count()

    async def run(self, requests: int, clients: int) -> None:
        """Send until that many were answered since the load was made."""
        await asyncio.gather(*(self._client(requests) for _ in range(clients)))

    async def _client(self, requests: int) -> None:
        loop = asyncio.get_running_loop()
        while self.answered < requests:
            ended = loop.create_future()
            await loop.create_connection(
                lambda ended=ended: _Client(self, requests, ended),  # type: ignore[misc]
                "127.0.0.1",
                self._port,
            )
            await ended

    def batch(self) -> bytes:
        """The next requests of a connection; only the last may end it."""
        numbers = [next(self._numbers) for _ in range(BATCH)]
        return b"".join(self._request(number, is_last=number == numbers[-1]) for number in numbers)

    def _request(self, number: int, is_last: bool) -> bytes:
        kind, model, path = _what(number, is_last)
        prompt = f"{number} " * (1 + number % 97)
        body = json.dumps(
            {"model": model, "prompt": prompt, "stream": kind in ("streams", "breaks")}
        ).encode()
        return (
            f"POST {path} HTTP/1.1\r\nHost: router\r\nX-Request-Id: id-{number}\r\n"
            f"X-Own-{number}: {number}\r\nContent-Length: {len(body)}\r\n\r\n"
        ).encode() + body


def _what(number: int, is_last: bool) -> tuple[str, str, str]:
    """Which engine, model and path: mostly ones that work, sometimes ones that nobody knows."""
    if is_last:
        kind = KINDS[number // BATCH % len(KINDS)]
        return kind, f"{kind}-0", "/v1/completions"
    if number % 10 == 0:
        return "", f"unknown-{number}", "/v1/completions"
    path = f"/v1/path-{number}" if number % 10 == 1 else "/v1/chat/completions"
    kind = "streams" if number % 4 == 2 else "works"
    return kind, f"{kind}-{number % MODELS}", path


class _Client(asyncio.Protocol):
    """Sends batch after batch; a broken response ends the connection, as it should."""

    def __init__(self, load: Load, requests: int, ended: "asyncio.Future[None]") -> None:
        self._load = load
        self._requests = requests
        self._ended = ended
        self._waiting = 0
        self._tail = b""
        self._batches_left = BATCHES_OF_A_CONNECTION

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._send()

    def _send(self) -> None:
        if not self._batches_left or self._load.answered >= self._requests:
            self._transport.close()
            return
        self._batches_left -= 1
        self._waiting = BATCH
        self._transport.write(self._load.batch())

    def data_received(self, data: bytes) -> None:
        """Count heads: nothing else in these responses looks like one."""
        window = self._tail + data
        heads = window.count(b"HTTP/1.1 ")
        self._tail = window[-8:]
        self._waiting -= heads
        self._load.answered += heads
        if not self._waiting and data.endswith((b"\r\n", b"}", b"]")):
            self._send()

    def connection_lost(self, error: Exception | None) -> None:
        if not self._ended.done():
            self._ended.set_result(None)
