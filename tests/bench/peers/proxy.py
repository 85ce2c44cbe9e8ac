"""A running proxy: started, warm, and what it has taken so far."""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from tests.bench.peers.contestants import Start
from tests.bench.peers.programs import Load, load_command, load_of, pinned
from tests.bench.processes import cpu_seconds, descendants, parents_of_all, use_of
from tests.support.eventually import eventually

_START_SECONDS = 60.0
_PROBE = (
    b"POST /v1/chat/completions HTTP/1.1\r\nhost: bench\r\ncontent-type: application/json\r\n"
    b"connection: close\r\ncontent-length: 65\r\n\r\n"
    b'{"model":"m","messages":[{"role":"user","content":"are you on"}]}'
)


class Proxy:
    """One contestant, or the engines themselves where nothing is between."""

    def __init__(self, name: str, port: int, pid: int | None = None) -> None:
        self.name = name
        self.port = port
        self.pid = pid
        self.peak_bytes = 0
        """The most memory that `note_memory` saw."""

    def cpu_seconds(self) -> float:
        """User and system time of all its processes so far."""
        return sum(cpu_seconds(pid) for pid in self._pids())

    def note_memory(self) -> None:
        """Look at the proportional set size of all its processes."""
        used = (use_of(pid) for pid in self._pids())
        now_bytes = sum(one.memory_bytes for one in used if one is not None)
        self.peak_bytes = max(self.peak_bytes, now_bytes)

    def _pids(self) -> set[int]:
        if self.pid is None:
            return set()
        return descendants(parents_of_all(), {self.pid})


@contextlib.asynccontextmanager
async def running(
    name: str, start: Start, engines: Sequence[int], folder: Path, cpu: int | None
) -> AsyncIterator[Proxy]:
    """The proxy, on one processor, once it answers a completion; ends with the block.

    Raises `MissingToolError` where it isn't on this machine, `AssertionError` where it doesn't
    answer.
    """
    place = folder / name
    place.mkdir()
    started = start(engines, place)
    with (place / "log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            *pinned(started.command, cpu),
            env=os.environ | dict(started.environment),
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    proxy = Proxy(name, started.port, process.pid)
    try:
        await eventually(lambda: _answers(proxy.port), _START_SECONDS, f"{name} answers")
        yield proxy
    finally:
        for pid in descendants(parents_of_all(), {process.pid}):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, 9)
        await process.wait()


async def under_load(
    proxy: Proxy,
    bodies: Path,
    cpu: int | None,
    *,
    connections: int,
    seconds: float,
    rate: int = 0,
    requests: int = 0,
) -> tuple[Load, float]:
    """What clients saw, and the CPU time the proxy took for it, seconds."""
    command = load_command(
        proxy.port,
        bodies,
        connections=connections,
        seconds=seconds,
        rate=rate,
        requests=requests,
        cpu=cpu,
    )
    before = proxy.cpu_seconds()
    clients = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    output, _ = await clients.communicate()
    return load_of(output), proxy.cpu_seconds() - before


async def _answers(port: int) -> bool:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(_PROBE)
        answer = await reader.read(64)
    finally:
        writer.close()
    return b" 200 " in answer
