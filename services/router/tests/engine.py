"""A small real engine: a TCP server whose answers tests script byte by byte."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from inferbus_contracts.events.route import EndpointEntry
from services.router.tests.builders import endpoint


class Turn:
    """One request at the engine, and the means to answer it."""

    def __init__(
        self, head: bytes, body: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        lines = head.decode("latin-1").split("\r\n")
        self.method, self.target, _ = lines[0].split(" ")
        pairs = (line.partition(": ") for line in lines[1:] if line)
        self.headers = {name.lower(): value for name, _, value in pairs}
        self.body = body
        self.is_over = False
        """The connection can't be used any more."""
        self._reader = reader
        self._writer = writer

    @property
    def tls(self) -> ssl.SSLObject:
        """The TLS of the connection it came on."""
        found: ssl.SSLObject = self._writer.get_extra_info("ssl_object")
        return found

    @property
    def connection(self) -> object:
        """The same for all requests of one connection, and for no other."""
        return self._writer

    @property
    def json(self) -> Any:
        """The request's body, parsed."""
        return json.loads(self.body)

    async def send(self, data: bytes) -> None:
        """Send bytes, whatever they are."""
        self._writer.write(data)
        await self._writer.drain()

    async def respond(self, document: Any = None, status: int = 200, **headers: str) -> None:
        """A whole response with a JSON body."""
        body = json.dumps({"ok": True} if document is None else document).encode()
        lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
        head = (
            f"HTTP/1.1 {status} Status\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n{lines}\r\n"
        )
        await self.send(head.encode() + body)

    async def start_stream(self, content_type: str = "text/event-stream") -> None:
        """The head of a response in chunks."""
        await self.send(
            f"HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\n"
            "Transfer-Encoding: chunked\r\n\r\n".encode()
        )

    async def chunk(self, data: bytes) -> None:
        """One chunk of it; empty: the last."""
        await self.send(b"%x\r\n%b\r\n" % (len(data), data))

    async def event(self, document: Any) -> None:
        """One event of it."""
        await self.chunk(b"data: " + json.dumps(document).encode() + b"\n\n")

    async def gone(self) -> None:
        """Wait until the router has closed the connection."""
        try:
            while await self._reader.read(65536):
                pass
        except ConnectionError:
            pass
        self.is_over = True

    def close(self, reset: bool = False) -> None:
        """Close the connection; with `reset` without sending what is left."""
        self.is_over = True
        if reset:
            self._writer.transport.abort()
        else:
            self._writer.close()


Script = Callable[[Turn], Awaitable[None]]


class Gate:
    """A script that answers nobody before the gate is opened."""

    def __init__(self) -> None:
        self._opened = asyncio.Event()

    async def __call__(self, turn: Turn) -> None:
        await self._opened.wait()
        await turn.respond()

    def open(self) -> None:
        """Let everybody through, who waits and who comes later."""
        self._opened.set()


class Engine:
    """One endpoint."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.turns: list[Turn] = []
        """Every request, in the order they came."""
        self.connections = 0
        """Ever accepted."""
        self.open = 0
        """Open now."""
        self.port = 0
        self.refuses_unread = False
        """Answer 413 to a head, keep the connection and leave the body where it is."""
        self._server: asyncio.Server | None = None
        self._running: set[asyncio.Task[None]] = set()

    def entry(self, **fields: Any) -> EndpointEntry:
        """The engine as an endpoint."""
        return endpoint(self.port, **fields)

    async def start(self, port: int = 0, tls: ssl.SSLContext | None = None) -> None:
        """Listen; `port` 0 lets the system choose."""
        self._server = await asyncio.start_server(
            self._serve, "127.0.0.1", port, backlog=512, ssl=tls
        )
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Stop listening and break every connection."""
        if self._server is not None:
            self._server.close()
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task
        self._running.add(task)
        self.connections += 1
        self.open += 1
        try:
            if self.refuses_unread:
                await _refuse_unread(reader, writer)
            while turn := await _read_turn(reader, writer):
                self.turns.append(turn)
                await self.script(turn)
                if turn.is_over:
                    break
        except (ConnectionError, asyncio.CancelledError):
            pass
        finally:
            self.open -= 1
            self._running.discard(task)
            writer.transport.abort()


async def _read_turn(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Turn | None:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    turn = Turn(head[:-4], b"", reader, writer)
    turn.body = await reader.readexactly(int(turn.headers.get("content-length", 0)))
    return turn


async def _refuse_unread(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n")
    await writer.drain()
    await asyncio.Event().wait()


async def answers(turn: Turn) -> None:
    """The script of an engine that works."""
    await turn.respond({"id": "x", "usage": {"prompt_tokens": 3, "completion_tokens": 5}})


@asynccontextmanager
async def running_engine(
    script: Script = answers, port: int = 0, tls: ssl.SSLContext | None = None
) -> AsyncIterator[Engine]:
    """An engine that listens."""
    engine = Engine(script)
    await engine.start(port, tls)
    try:
        yield engine
    finally:
        await engine.stop()
