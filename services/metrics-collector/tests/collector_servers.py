"""Servers that answer as badly as real ones do."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable

from inferbus_metrics_collector.ports import Endpoint

Answer = Callable[[asyncio.StreamWriter], Awaitable[None]]
"""Writes the answer to one request; the connection stays open unless it closes it."""


class PageServer:
    """One server; counts what it is asked."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.connections = 0
        self.requests: list[bytes] = []
        self.endpoint = Endpoint("127.0.0.1", 0, "/metrics")
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self, host: str) -> asyncio.Server:
        server = await asyncio.start_server(self._accept, host, 0)
        self.endpoint = Endpoint(host, server.sockets[0].getsockname()[1], "/metrics")
        return server

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.ensure_future(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while not writer.is_closing():
                self.requests.append(await reader.readuntil(b"\r\n\r\n"))
                await self.answer(writer)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


@contextlib.asynccontextmanager
async def page_server(answer: Answer, host: str = "127.0.0.1") -> AsyncIterator[PageServer]:
    """A server whose every request is answered by `answer`."""
    page = PageServer(answer)
    server = await page.start(host)
    try:
        yield page
    finally:
        server.close()
        await page.stop()


def good(body: bytes, *headers: str, status: str = "200 OK") -> Answer:
    """An answer with a length."""
    return raw(_head(status, f"Content-Length: {len(body)}", *headers) + body)


def chunked(*parts: bytes) -> Answer:
    """An answer in chunks."""
    body = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts)
    return raw(_head("200 OK", "Transfer-Encoding: chunked") + body + b"0\r\n\r\n")


def raw(data: bytes, *, close: bool = False) -> Answer:
    """These bytes, and perhaps an end."""

    async def answer(writer: asyncio.StreamWriter) -> None:
        writer.write(data)
        if close:
            writer.close()

    return answer


def endless(head: bytes, part: bytes, sent: list[int]) -> Answer:
    """`part` again and again until nobody listens; `sent` gets the bytes of each write."""

    async def answer(writer: asyncio.StreamWriter) -> None:
        writer.write(head)
        while not writer.is_closing():
            writer.write(part)
            sent.append(len(part))
            await writer.drain()

    return answer


def crumbs(body: bytes) -> Answer:
    """One byte a chunk."""
    return chunked(*(body[place : place + 1] for place in range(len(body))))


async def redirect_to_itself(writer: asyncio.StreamWriter) -> None:
    """Come again, for ever."""
    host, port = writer.get_extra_info("sockname")[:2]
    location = f"Location: http://{host}:{port}/metrics"
    writer.write(_head("302 Found", location, "Content-Length: 0"))


def dripping(head: bytes, part: bytes) -> Answer:
    """`part` every few milliseconds, for ever."""

    async def answer(writer: asyncio.StreamWriter) -> None:
        writer.write(head)
        while not writer.is_closing():
            writer.write(part)
            await writer.drain()
            await asyncio.sleep(0.005)

    return answer


async def silent(_: asyncio.StreamWriter) -> None:
    """No answer, ever."""
    await asyncio.Event().wait()


def _head(status: str, *headers: str) -> bytes:
    types = (
        () if any("Content-Type" in header for header in headers) else ("Content-Type: text/plain",)
    )
    return "\r\n".join((f"HTTP/1.1 {status}", *types, *headers, "", "")).encode()
