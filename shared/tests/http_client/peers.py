"""A server that says what a test wants, byte by byte, and a client of it."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from inferbus_shared.http_client.client import HttpClient
from inferbus_shared.http_client.request import RequestWriter
from inferbus_shared.http_client.route import Route

REQUEST = b"GET /x HTTP/1.1\r\nHost: h\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
PATIENT_SECONDS = 60.0

Serve = Callable[["Visit"], Awaitable[None]]


class Wire(asyncio.Transport):
    """A transport that sends nothing."""

    is_aborted = False
    is_paused = False

    def write(self, data: object) -> None:
        pass

    def is_closing(self) -> bool:
        return self.is_aborted

    def get_write_buffer_size(self) -> int:
        return 0

    def pause_reading(self) -> None:
        self.is_paused = True

    def resume_reading(self) -> None:
        self.is_paused = False

    def abort(self) -> None:
        self.is_aborted = True


class Visit:
    """One connection, as the server sees it."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int
    ) -> None:
        self.reader = reader
        self.writer = writer
        self.number = number
        """The how many'th it is, from 1 on."""

    async def request(self) -> bytes:
        """The next request, body included; empty when the client has left."""
        try:
            head = await self.reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError:
            return b""
        length = [
            int(line.partition(b":")[2])
            for line in head.split(b"\r\n")
            if line.lower().startswith(b"content-length:")
        ]
        return head + await self.reader.readexactly(length[0] if length else 0)

    async def say(self, *parts: bytes) -> None:
        """Each part arrives by itself, as far as that can be arranged."""
        for part in parts:
            self.writer.write(part)
            await self.writer.drain()
            await asyncio.sleep(0)


class Peer:
    """A server of one test."""

    def __init__(self, serve: Serve) -> None:
        self._serve = serve
        self.url = ""
        self.visits = 0
        self.open = 0
        """Connections that are open now."""
        self.requests: list[bytes] = []

    async def _visit(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.visits += 1
        self.open += 1
        try:
            await self._serve(Visit(reader, writer, self.visits))
        except (OSError, asyncio.IncompleteReadError):
            pass  # the client left
        finally:
            self.open -= 1
            writer.transport.abort()


@asynccontextmanager
async def peer(serve: Serve, tls: ssl.SSLContext | None = None) -> AsyncIterator[Peer]:
    """One that listens; what it does to each connection is `serve`."""
    running = Peer(serve)
    tasks: set[asyncio.Task[None]] = set()

    def visited(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(running._visit(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    server = await asyncio.start_server(visited, "127.0.0.1", 0, ssl=tls)
    port = server.sockets[0].getsockname()[1]
    running.url = f"{'https' if tls else 'http'}://127.0.0.1:{port}"
    try:
        yield running
    finally:
        server.close()
        for task in tuple(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        # What was aborted is closed a round of the loop later, under TLS two.
        for _ in range(3):
            await asyncio.sleep(0)


def answering(*parts: bytes) -> Serve:
    """Answers every request of a connection with these parts."""

    async def serve(visit: Visit) -> None:
        while await visit.request():
            await visit.say(*parts)

    return serve


@asynccontextmanager
async def client_to(
    url: str,
    *,
    max_connections: int = 4,
    connect_timeout_seconds: float = PATIENT_SECONDS,
    tls: ssl.SSLContext | None = None,
    server_name: str | None = None,
    proxy: str | None = None,
) -> AsyncIterator[HttpClient]:
    client = HttpClient(
        Route.to(url, tls=tls, server_name=server_name, proxy=proxy),
        max_connections=max_connections,
        connect_timeout_seconds=connect_timeout_seconds,
    )
    try:
        yield client
    finally:
        await client.close()


async def get(client: HttpClient, silence_seconds: float = PATIENT_SECONDS) -> bytes:
    """The body of a request that may be repeated."""
    _, body = await client.fetch(REQUEST, silence_seconds, is_idempotent=True)
    return body


async def post(client: HttpClient, body: bytes = b"{}") -> bytes:
    """The body of one that may not."""
    head = b"POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n" % len(body)
    _, answer = await client.fetch(head + body, PATIENT_SECONDS, is_idempotent=False)
    return answer


def writer_to(url: str, proxy: str | None = None, **headers: str) -> RequestWriter:
    return RequestWriter(Route.to(url, proxy=proxy), headers)
