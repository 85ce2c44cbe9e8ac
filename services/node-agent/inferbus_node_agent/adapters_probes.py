"""Probes and hooks over raw sockets and commands.

A probe is one short connection, many times a second on a busy node, so nothing here keeps state or
builds requests twice; only the status line of an answer is read.
"""

import asyncio
import contextlib
import os
import signal
import ssl
from collections.abc import Sequence
from pathlib import Path

from inferbus_node_agent.plan import (
    DrainTarget,
    ExecTarget,
    HookTarget,
    HttpTarget,
    PauseTarget,
    ProbeTarget,
)
from inferbus_node_agent.policy_drain import is_drained
from inferbus_shared.clock import Clock

HOOK_REQUEST_SECONDS = 30.0
"""Real time a network hook may take; the grace period ends it earlier where that is shorter."""
DRAIN_POLL_SECONDS = 0.25
DRAIN_ANSWER_SECONDS = 2.0
"""A metrics page that takes longer is taken for one that doesn't answer."""
_MAX_LINE_BYTES = 8192
_MAX_PAGE_BYTES = 4 * 1024 * 1024
_SUCCESS = range(200, 400)
"""kubelet's rule."""


class SocketProber:
    """A `Prober`."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    async def probe(
        self, target: ProbeTarget, address: str, process_id: int | None, timeout_seconds: float
    ) -> str:
        """See `Prober.probe`."""
        try:
            async with asyncio.timeout(timeout_seconds):
                return await self._once(target, address, process_id)
        except TimeoutError:
            return f"no answer within {timeout_seconds:g} s"
        except (OSError, ssl.SSLError) as error:
            return _reason(error)

    async def run_hook(self, target: HookTarget, address: str, process_id: int | None) -> str:
        """See `Prober.run_hook`."""
        if isinstance(target, PauseTarget):
            await self._clock.sleep(target.duration_ms / 1000)
            return ""
        if isinstance(target, DrainTarget):
            await self._drain(target, address)
            return ""
        if isinstance(target, ExecTarget):
            return await _execute(target.command, process_id)
        return await self.probe(target, address, process_id, HOOK_REQUEST_SECONDS)

    async def _once(self, target: ProbeTarget, address: str, process_id: int | None) -> str:
        if isinstance(target, ExecTarget):
            return await _execute(target.command, process_id)
        host = target.host or address
        if isinstance(target, HttpTarget):
            return _judge(await _request(host, target, whole=False))
        loop = asyncio.get_running_loop()
        transport, _ = await loop.create_connection(asyncio.Protocol, host, target.port)
        transport.abort()
        return ""

    async def _drain(self, target: DrainTarget, address: str) -> None:
        """Poll until nothing runs or waits; an engine that doesn't answer has nothing to finish."""
        page_target = HttpTarget(address, target.port, "/metrics")
        while True:
            try:
                async with asyncio.timeout(DRAIN_ANSWER_SECONDS):
                    answer = await _request(address, page_target, whole=True)
            except (TimeoutError, OSError):
                return
            try:
                if _judge(answer) or is_drained(answer.decode(errors="replace"), target.gauges):
                    return
            except ValueError:
                return
            await asyncio.sleep(DRAIN_POLL_SECONDS)


class _Exchange(asyncio.Protocol):
    """Sends a request and keeps what comes back until the peer closes or enough has come."""

    def __init__(self, request: bytes, enough_bytes: int, until: bytes) -> None:
        self._request = request
        self._enough = enough_bytes
        self._until = until
        self._received = bytearray()
        self._transport: asyncio.Transport | None = None
        self.answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        self._received += data
        if len(self._received) >= self._enough or (self._until and self._until in self._received):
            self._finish()

    def eof_received(self) -> None:
        self._finish()

    def connection_lost(self, error: Exception | None) -> None:
        if error is not None and not self.answer.done():
            self.answer.set_exception(error)
        self._finish()

    def abort(self) -> None:
        """Close at once."""
        if self._transport is not None:
            self._transport.abort()

    def _finish(self) -> None:
        if not self.answer.done():
            self.answer.set_result(bytes(self._received))


async def _request(host: str, target: HttpTarget, *, whole: bool) -> bytes:
    """The answer to a GET, or at least its first line."""
    lines = [f"GET {target.path} HTTP/1.1"]
    names = {name.lower() for name, _ in target.headers}
    if "host" not in names:
        lines.append(f"Host: {host}:{target.port}")
    if "user-agent" not in names:
        lines.append("User-Agent: inferbus-probe")
    lines += [f"{name}: {value}" for name, value in target.headers]
    request = "\r\n".join([*lines, "Accept: */*", "Connection: close", "", ""]).encode()
    until, enough_bytes = (b"", _MAX_PAGE_BYTES) if whole else (b"\r\n", _MAX_LINE_BYTES)
    context = _unverified() if target.tls else None
    _, exchange = await asyncio.get_running_loop().create_connection(
        lambda: _Exchange(request, enough_bytes, until), host, target.port, ssl=context
    )
    try:
        return await exchange.answer
    finally:
        exchange.abort()


def _unverified() -> ssl.SSLContext:
    """Probes ask whether a server works, not who it is (kubelet's rule)."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def _judge(answer: bytes) -> str:
    """Why an HTTP answer is a failure; empty when it is none."""
    words = answer.partition(b"\r\n")[0].split(maxsplit=2)
    if len(words) < 2 or not words[0].startswith(b"HTTP/") or not words[1].isdigit():
        return "the answer is not HTTP" if answer else "the connection was closed without an answer"
    return "" if int(words[1]) in _SUCCESS else f"HTTP status {int(words[1])}"


def _reason(error: OSError) -> str:
    return (error.strerror or str(error) or type(error).__name__).lower()


async def _execute(command: Sequence[str], process_id: int | None) -> str:
    """Run a command with the environment and directory of a process; why it failed, or empty."""
    if not command:
        return "the command is empty"
    if process_id is None:
        return "the container doesn't run"
    process = Path(f"/proc/{process_id}")
    try:
        environment = _environment((process / "environ").read_bytes())
        running = await asyncio.create_subprocess_exec(
            *command,
            env=environment,
            cwd=process / "cwd",
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError as error:
        return f"{command[0]} can't be run: {_reason(error)}"
    try:
        code = await running.wait()
    finally:
        if running.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(running.pid, signal.SIGKILL)
            await _reaped(running)
    return "" if code == 0 else f"{command[0]} ended with code {code}"


async def _reaped(process: asyncio.subprocess.Process) -> None:
    """Wait for a killed process, even if that is cancelled again: it takes milliseconds, and a
    process that nobody has waited for outlives the event loop."""
    waiting = asyncio.ensure_future(process.wait())
    while not waiting.done():
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.shield(waiting)


def _environment(block: bytes) -> dict[bytes, bytes]:
    pairs = (entry.partition(b"=") for entry in block.split(b"\0") if b"=" in entry)
    return {name: value for name, _, value in pairs}
