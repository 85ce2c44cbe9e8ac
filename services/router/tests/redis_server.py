"""A Redis server for tests, and a wire to it that tests can cut.

The real server where `redis-server` or `valkey-server` is on the path, else one that speaks the
same protocol and runs the same Lua.
"""

import asyncio
import shutil
import socket
import subprocess
import tempfile
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress

from fakeredis import TcpFakeServer

_PROGRAMS = ("redis-server", "valkey-server")
_ATTEMPTS = 5


@contextmanager
def running_redis() -> Iterator[int]:
    """A server of its own; yields its port."""
    program = next((path for name in _PROGRAMS if (path := shutil.which(name))), None)
    with _real_server(program) if program else _stand_in() as port:
        yield port


@contextmanager
def _real_server(program: str) -> Iterator[int]:
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(_ATTEMPTS):
            port = _free_port()
            arguments = ["--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", folder]
            with subprocess.Popen(
                [program, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
            ) as process:
                assert process.stdout
                if not any("eady to accept connections" in line for line in process.stdout):
                    continue  # somebody was faster at the port
                try:
                    yield port
                finally:
                    process.terminate()
                return
    raise AssertionError(f"{program} does not start")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def _stand_in() -> Iterator[int]:
    server = TcpFakeServer(("127.0.0.1", 0), server_type="redis")
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class Wire:
    """Passes bytes on between clients and one server."""

    def __init__(self, server_port: int) -> None:
        self._server_port = server_port
        self._server: asyncio.Server | None = None
        self._open = asyncio.Event()
        self._open.set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.port = 0

    async def connect(self) -> None:
        """Take clients, at the port that was had before."""
        self._server = await asyncio.start_server(self._pass_on, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def cut(self) -> None:
        """Close everything, and take nobody."""
        if self._server is not None:
            self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def silence(self) -> None:
        """Pass nothing on any more."""
        self._open.clear()

    def speak(self) -> None:
        """Go on."""
        self._open.set()

    @property
    def address(self) -> str:
        """`host:port`."""
        return f"127.0.0.1:{self.port}"

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task
        self._tasks.add(task)
        try:
            to_server = await asyncio.open_connection("127.0.0.1", self._server_port)
            try:
                async with asyncio.TaskGroup() as both:
                    both.create_task(self._copy(reader, to_server[1]))
                    both.create_task(self._copy(to_server[0], writer))
            finally:
                to_server[1].close()
        except (OSError, ExceptionGroup, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _copy(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        while data := await source.read(65536):
            await self._open.wait()
            target.write(data)
            await target.drain()
        raise ConnectionResetError


@asynccontextmanager
async def wire_to(server_port: int) -> AsyncIterator[Wire]:
    """A wire to a server."""
    wire = Wire(server_port)
    await wire.connect()
    try:
        yield wire
    finally:
        with suppress(OSError):
            await wire.cut()
