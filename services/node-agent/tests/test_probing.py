"""Probes and hooks against real sockets, also against those that never answer."""

import asyncio
import contextlib
import os
import socket
import ssl
import subprocess
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from inferbus_node_agent.adapters_probes import SocketProber
from inferbus_node_agent.plan import (
    DrainTarget,
    ExecTarget,
    HttpTarget,
    PauseTarget,
    ProbeTarget,
    TcpTarget,
)
from inferbus_shared.clock import Anchor, SystemClock
from tests.support.eventually import eventually

LOCAL = "127.0.0.1"
Answer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
PROBER = SocketProber(SystemClock())


@contextlib.asynccontextmanager
async def serving(answer: Answer, **options: object) -> AsyncIterator[int]:
    conversations: set[asyncio.Task[None]] = set()

    async def converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        conversations.add(task)
        try:
            await answer(reader, writer)
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    server = await asyncio.start_server(converse, LOCAL, 0, **options)  # type: ignore[arg-type]
    async with server:
        yield server.sockets[0].getsockname()[1]
    for task in conversations:
        task.cancel()
    await asyncio.gather(*conversations, return_exceptions=True)


def saying(text: bytes) -> Answer:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(text)
            await writer.drain()

    return answer


async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Reads whatever comes and never says a word."""
    with contextlib.suppress(ConnectionError):
        await reader.read()


async def probe(target: ProbeTarget, timeout_seconds: float = 5, pid: int | None = None) -> str:
    return await PROBER.probe(target, LOCAL, pid, timeout_seconds)


@pytest.mark.parametrize(
    ("text", "failure"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", ""),
        (b"HTTP/1.0 204 No Content\r\n\r\n", ""),
        (b"HTTP/1.1 302 Found\r\nLocation: /\r\n\r\n", ""),
        (b"HTTP/1.1 399 Odd\r\n\r\n", ""),
        (b"HTTP/1.1 400 Bad\r\n\r\n", "HTTP status 400"),
        (b"HTTP/1.1 503 Service Unavailable\r\n\r\n", "HTTP status 503"),
        (b"HTTP/1.1 199 Odd\r\n\r\n", "HTTP status 199"),
        (b"SSH-2.0-OpenSSH\r\n", "the answer is not HTTP"),
        (b"HTTP/1.1 abc\r\n\r\n", "the answer is not HTTP"),
        (b"", "the connection was closed without an answer"),
    ],
)
async def test_http_answers(text: bytes, failure: str) -> None:
    async with serving(saying(text)) as port:
        assert await probe(HttpTarget("", port)) == failure


async def test_the_request_is_what_the_manifest_says() -> None:
    seen: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")

    async with serving(answer) as port:
        headers = (("Host", "chat.example"), ("X-A", "1"))
        assert await probe(HttpTarget("", port, "/ready?x=1", headers=headers)) == ""
    lines = seen[0].decode().split("\r\n")
    assert lines[0] == "GET /ready?x=1 HTTP/1.1"
    assert "Host: chat.example" in lines
    assert "X-A: 1" in lines
    assert sum(line.lower().startswith("host:") for line in lines) == 1


async def test_an_answer_that_goes_on_for_ever_is_cut_off() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        with contextlib.suppress(ConnectionError):
            while True:
                writer.write(b"x" * 65536)
                await writer.drain()

    async with serving(answer) as port:
        assert await probe(HttpTarget("", port)) == ""


async def test_silence_fails_in_time() -> None:
    began = time.monotonic()
    async with serving(silent) as port:
        assert await probe(HttpTarget("", port), 0.1) == "no answer within 0.1 s"
    assert time.monotonic() - began < 3


async def test_a_server_that_never_accepts_fails_in_time() -> None:
    with socket.socket() as listener:
        listener.bind((LOCAL, 0))
        listener.listen(0)
        port = listener.getsockname()[1]
        assert await probe(HttpTarget("", port), 0.1) == "no answer within 0.1 s"


async def test_nobody_there() -> None:
    async with serving(silent) as port:
        pass
    assert await probe(HttpTarget("", port)) != ""
    assert await probe(TcpTarget("", port)) != ""


async def test_tcp_needs_a_connection_only() -> None:
    async with serving(silent) as port:
        assert await probe(TcpTarget("", port)) == ""


async def test_a_host_in_the_manifest_wins_over_the_pods_address() -> None:
    async with serving(saying(b"HTTP/1.1 200 OK\r\n\r\n")) as port:
        found = await PROBER.probe(HttpTarget(LOCAL, port), "127.255.0.1", None, 5)
    assert found == ""


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[Path, Path]:
    """A certificate nobody trusts, and its key."""
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    made = subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"),
            *("-subj", "/CN=x", "-keyout", str(key), "-out", str(certificate)),
        ],
        capture_output=True,
        check=False,
    )
    if made.returncode:
        pytest.skip("openssl can't make a certificate here")
    return certificate, key


async def test_https_without_a_trusted_certificate(certificate: tuple[Path, Path]) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    async with serving(saying(b"HTTP/1.1 200 OK\r\n\r\n"), ssl=context) as port:
        assert await probe(HttpTarget("", port, tls=True)) == ""
    async with serving(saying(b"HTTP/1.1 200 OK\r\n\r\n")) as port:
        assert await probe(HttpTarget("", port, tls=True), 0.5) != ""


async def test_a_command_has_the_containers_environment(tmp_path: Path) -> None:
    environment = {"PATH": os.environ["PATH"], "KIND": "engine"}
    process = await asyncio.create_subprocess_exec("sleep", "600", env=environment, cwd=tmp_path)
    check = ExecTarget(("sh", "-c", f'test "$KIND" = engine && test "$PWD" = {tmp_path}'))
    try:
        assert await probe(check, pid=process.pid) == ""
        assert await probe(ExecTarget(("sh", "-c", "exit 3")), pid=process.pid) == (
            "sh ended with code 3"
        )
        missing = await probe(ExecTarget(("/no/such/check",)), pid=process.pid)
        assert missing.startswith("/no/such/check can't be run")
    finally:
        process.kill()
        await process.wait()


async def test_a_command_without_a_process_fails() -> None:
    assert await probe(ExecTarget(("true",))) == "the container doesn't run"


async def test_a_command_that_hangs_is_killed_with_all_it_started(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    script = f"echo $$ > {pids}; sleep 600 & echo $! >> {pids}; wait"
    found = await probe(ExecTarget(("sh", "-c", script)), 0.3, os.getpid())
    assert found == "no answer within 0.3 s"
    for pid in pids.read_text().split():
        stat = Path(f"/proc/{pid}/stat")
        await eventually(lambda stat=stat: not stat.exists() or " Z " in stat.read_text())


async def test_a_drain_waits_until_nothing_runs_or_waits() -> None:
    left = [2.0, 1.0, 0.0]
    asked: list[float] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = await reader.readuntil(b"\r\n\r\n")
        assert request.startswith(b"GET /metrics ")
        asked.append(left.pop(0))
        page = f'vllm:num_requests_running{{model="a"}} {asked[-1]}\n'
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n" + page.encode())

    async with serving(answer) as port:
        target = DrainTarget(port, ("vllm:num_requests_running",))
        assert await PROBER.run_hook(target, LOCAL, None) == ""
    assert asked == [2.0, 1.0, 0.0]


@pytest.mark.parametrize(
    "text",
    [b"", b"HTTP/1.1 500 Oh\r\n\r\n", b"HTTP/1.1 200 OK\r\n\r\nvllm:num_requests_running many\n"],
)
async def test_a_drain_of_a_broken_engine_ends_at_once(text: bytes) -> None:
    async with serving(saying(text)) as port:
        target = DrainTarget(port, ("vllm:num_requests_running",))
        assert await PROBER.run_hook(target, LOCAL, None) == ""
    assert await PROBER.run_hook(target, LOCAL, None) == ""


async def test_a_pause_lasts_virtual_time() -> None:
    fast = SocketProber(SystemClock(Anchor(real_ms=0, virtual_ms=0, rate=1_000)))
    began = time.monotonic()
    assert await fast.run_hook(PauseTarget(60_000), LOCAL, None) == ""
    assert time.monotonic() - began < 10


async def test_probes_leave_no_descriptor_behind() -> None:
    def open_descriptors() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    async with serving(saying(b"HTTP/1.1 200 OK\r\n\r\n")) as port, serving(silent) as mute:
        await probe(HttpTarget("", port))
        before = open_descriptors()
        for _ in range(30):
            await probe(HttpTarget("", port))
            await probe(HttpTarget("", mute), 0.005)
            await probe(TcpTarget("", mute))
        await eventually(lambda: open_descriptors() <= before)
