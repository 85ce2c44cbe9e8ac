"""Containers as processes, through the fork server and the run folder.

The fork server forks and tells of ends; the run folder remembers. Either may be lost alone: a
killed agent finds its processes by their files, a killed fork server is started again and adopts
them.
"""

import asyncio
import contextlib
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_node_agent.policy_adoption import Observed
from inferbus_node_agent.policy_containers import ForkedProgram
from inferbus_node_agent.ports import Attempt, OnEnd, StartOrder
from inferbus_node_agent.run_folder import RunFolder
from inferbus_node_agent.state import Ended
from inferbus_shared.clock import Clock
from inferbus_shared.processes.client import AsyncForkServerClient
from inferbus_shared.processes.commands import Command, adopt, spawn
from inferbus_shared.processes.identity import (
    ProcessIdentity,
    alive,
    kill_group,
    read_identity,
    send_signal,
)
from inferbus_shared.processes.records import ChildInfo, ExitRecord, SpawnSpec, read_exit_record
from inferbus_shared.processes.session import ChildEvent
from inferbus_shared.processes.start import start_fork_server

T = TypeVar("T")

_FIRST_RETRY_SECONDS = 0.1
_MOST_RETRY_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class ForkServerAddress:
    """Where the fork server listens, and how to start one where none does."""

    socket_path: Path
    log_path: Path
    preload: Sequence[str]
    environment: Mapping[str, str] | None = None


class ProcessRuntime:
    """A `ContainerRuntime`; `connect` first."""

    def __init__(self, folder: RunFolder, server: ForkServerAddress, clock: Clock) -> None:
        self._folder = folder
        self._server = server
        self._clock = clock
        self._on_end: OnEnd = _ignore
        self._client: AsyncForkServerClient | None = None
        self._starting: dict[Attempt, ExitRecord | None] = {}

    async def connect(self, on_end: OnEnd, on_lost: Callable[[], None]) -> None:
        """See `ContainerRuntime.connect`; starts a fork server if none answers.

        Raises `ProblemsError` (PROCESS_FAILED) when a new one can't import what it must.
        """
        self._on_end = on_end
        pause_seconds = _FIRST_RETRY_SECONDS
        while True:
            server = self._server
            await asyncio.to_thread(
                start_fork_server,
                server.socket_path,
                server.preload,
                server.log_path,
                server.environment,
            )
            with contextlib.suppress(ProblemsError):  # killed again between start and connect
                self._client = AsyncForkServerClient(server.socket_path, self._on_event, on_lost)
                return
            await asyncio.sleep(pause_seconds)
            pause_seconds = min(pause_seconds * 2, _MOST_RETRY_SECONDS)

    def close(self) -> None:
        """See `ContainerRuntime.close`."""
        if self._client is not None:
            self._client.close()

    async def start(self, order: StartOrder) -> Observed:
        """See `ContainerRuntime.start`."""
        attempt = order.attempt
        self._folder.forget_old_attempts(attempt)
        self._starting[attempt] = None
        try:
            child = await self._call(spawn(self._spec(order)))
            ended = self._starting[attempt]
        finally:
            del self._starting[attempt]
        if ended is not None:
            asyncio.get_running_loop().call_soon(self._tell_end, attempt, ended)
        return Observed(attempt.number, self._clock.now_ms(), _process_id(child.identity))

    async def observe(self, uid: str, container: str) -> Observed | None:
        """See `ContainerRuntime.observe`. Raises `ProblemsError` when the fork server is lost."""
        attempt = self._folder.last_attempt(uid, container)
        if attempt is None:
            return None
        identity_file = self._folder.identity_file(attempt)
        identity = read_identity(identity_file)
        if identity is None:
            return None
        started_ms = self._virtual_ms(round(identity_file.stat().st_mtime * 1000))
        exit_file = self._folder.exit_file(attempt)
        if read_exit_record(exit_file) is None:
            child = ChildInfo(_name(attempt), identity, str(exit_file))
            if await self._call(adopt(child)):
                return Observed(attempt.number, started_ms, _process_id(identity))
        record = read_exit_record(exit_file)
        if record is None:  # the fork server ended it a moment ago and is about to write it
            record = ExitRecord(identity, self._clock.anchor.to_real(self._clock.now_ms()))
        return Observed(
            attempt.number,
            started_ms,
            _process_id(identity),
            self._virtual_ms(record.finished_ms),
            record.code,
            record.signal,
        )

    def terminate(self, attempt: Attempt) -> None:
        """See `ContainerRuntime.terminate`."""
        identity = self._identity(attempt)
        if identity is not None:
            send_signal(identity, signal.SIGTERM)

    def kill(self, attempt: Attempt) -> None:
        """See `ContainerRuntime.kill`."""
        identity = self._identity(attempt)
        if identity is not None:
            kill_group(identity)

    def kill_last(self, uid: str, container: str) -> None:
        """See `ContainerRuntime.kill_last`."""
        attempt = self._folder.last_attempt(uid, container)
        if attempt is not None:
            self.kill(attempt)

    def process_id(self, attempt: Attempt) -> int | None:
        """See `ContainerRuntime.process_id`."""
        identity = self._identity(attempt)
        return identity.pid if identity is not None and alive(identity) else None

    def _identity(self, attempt: Attempt) -> ProcessIdentity | None:
        return read_identity(self._folder.identity_file(attempt))

    async def _call(self, command: Command[T]) -> T:
        if self._client is None:
            raise ProblemsError(
                Problem(
                    code=ErrorCode.NOT_RUNNING,
                    message="the agent isn't connected to a fork server",
                    remedy="call connect() first",
                )
            )
        return await self._client.call(command)

    def _spec(self, order: StartOrder) -> SpawnSpec:
        attempt, program = order.attempt, order.program
        forked = isinstance(program, ForkedProgram)
        return SpawnSpec(
            name=_name(attempt),
            entry_point=program.entry_point if isinstance(program, ForkedProgram) else "",
            argv=program.argv,
            environment=order.environment,
            directory=order.directory or str(self._folder.pod(attempt.uid)),
            log_path=str(self._folder.log(attempt.uid, attempt.container)),
            identity_path=str(self._folder.identity_file(attempt)),
            exit_path=str(self._folder.exit_file(attempt)),
            lock_path=str(self._folder.lock_file(attempt)),
            title=order.title if forked else "",
        )

    def _on_event(self, event: ChildEvent) -> None:
        attempt = _attempt(event.child.name)
        if event.exit is None or attempt is None:
            return
        if attempt in self._starting:
            self._starting[attempt] = event.exit
        else:
            self._tell_end(attempt, event.exit)

    def _tell_end(self, attempt: Attempt, record: ExitRecord) -> None:
        identity_file = self._folder.identity_file(attempt)
        finished_ms = self._virtual_ms(record.finished_ms)
        try:
            started_ms = self._virtual_ms(round(identity_file.stat().st_mtime * 1000))
        except FileNotFoundError:
            started_ms = finished_ms
        ended = Ended(attempt.number, started_ms, finished_ms, record.code, record.signal)
        self._on_end(attempt, ended)

    def _virtual_ms(self, real_ms: int) -> int:
        return self._clock.anchor.to_virtual(real_ms)


def _ignore(_: Attempt, __: Ended) -> None:
    """Before `connect` nobody listens."""


def _process_id(identity: ProcessIdentity) -> str:
    return f"process://{identity.pid}-{identity.start_ticks}"


def _name(attempt: Attempt) -> str:
    return f"pod/{attempt.uid}/{attempt.container}/{attempt.number}"


def _attempt(name: str) -> Attempt | None:
    """The attempt behind a child's name; None for children that are no containers."""
    parts = name.split("/")
    if len(parts) != 4 or parts[0] != "pod":
        return None
    return Attempt(parts[1], parts[2], int(parts[3]))
