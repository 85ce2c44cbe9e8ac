"""An agent in a test: real processes, and the outside in memory."""

import asyncio
import contextlib
import json
import os
import signal
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_node_agent.handlers import NodeAgent
from inferbus_node_agent.main import build_agent, subnet_of
from inferbus_node_agent.policy_containers import EngineMode
from inferbus_node_agent.policy_environment import SourceName
from inferbus_node_agent.ports import (
    Outside,
    PodApplied,
    PodNews,
    PodRemoved,
    PodSnapshot,
)
from inferbus_node_agent.settings import NodeAgentSettings
from inferbus_shared.clock import Anchor, SystemClock, real_now_ms
from inferbus_shared.processes.identity import (
    ProcessIdentity,
    alive,
    kill_group,
    read_identity,
    wait_until_gone,
)
from inferbus_shared.processes.start import connect_socket
from tests.support.eventually import eventually

Document = dict[str, Any]


class MemoryPods:
    """Pod objects of a node; a `PodSource` and a `StatusSink`."""

    def __init__(self) -> None:
        self.documents: dict[str, Document] = {}
        self.statuses: dict[str, Mapping[str, Any]] = {}
        self.history: list[tuple[str, Mapping[str, Any]]] = []
        self.finalised: list[str] = []
        self.refuse: list[ProblemsError] = []
        """Raised, one after the other, by the next calls of the sink."""
        self._listeners: list[asyncio.Queue[PodNews]] = []

    def apply(self, document: Document) -> str:
        uid: str = document["metadata"]["uid"]
        self.documents[uid] = document
        self._tell(PodApplied(document))
        return uid

    def remove(self, uid: str) -> None:
        self.documents.pop(uid, None)
        self._tell(PodRemoved(uid))

    def snapshot(self) -> None:
        self._tell(PodSnapshot(list(self.documents.values())))

    async def watch(self) -> AsyncIterator[PodNews]:
        queue: asyncio.Queue[PodNews] = asyncio.Queue()
        self._listeners.append(queue)
        yield PodSnapshot(list(self.documents.values()))
        while True:
            yield await queue.get()

    async def report(self, key: str, uid: str, status: Mapping[str, Any]) -> None:
        if self.refuse:
            raise self.refuse.pop(0)
        assert uid not in self.finalised, "a status after the end"
        self.statuses[uid] = status
        self.history.append((uid, status))

    async def finalise(self, key: str, uid: str) -> None:
        if self.refuse:
            raise self.refuse.pop(0)
        self.finalised.append(uid)
        self.remove(uid)

    def _tell(self, news: PodNews) -> None:
        for queue in self._listeners:
            queue.put_nowait(news)


class MemoryConfigs:
    """A `ConfigSource`."""

    def __init__(self) -> None:
        self.documents: dict[tuple[str, str, str], Document] = {}

    def put(self, kind: str, name: str, **content: Any) -> None:
        self.documents["default", kind, name] = content

    async def get(self, namespace: str, name: SourceName) -> Document | None:
        return self.documents.get((namespace, name.kind.value, name.name))


class MemoryModels:
    """A `ModelGate` in which a test says when a model is there."""

    def __init__(self) -> None:
        self.asked: dict[str, asyncio.Future[None]] = {}

    async def wait(self, pod_key: str, source: str, destination: str) -> None:
        future = self.asked.setdefault(source, asyncio.get_running_loop().create_future())
        await asyncio.shield(future)

    def ready(self, source: str) -> None:
        self.asked[source].set_result(None)

    def failed(self, source: str) -> None:
        problem = Problem(code=ErrorCode.MODEL_NOT_FOUND, message="there is no such model")
        self.asked.pop(source).set_exception(ProblemsError(problem))


class World:
    """A platform directory with an agent."""

    def __init__(self, directory: Path, fork_server: Path | None = None) -> None:
        """With `fork_server` the one at that socket is used, which others use too."""
        self.directory = directory
        self.fork_server_socket = fork_server or directory / "fork.sock"
        self._shared = fork_server is not None
        self.pods = MemoryPods()
        self.configs = MemoryConfigs()
        self.models = MemoryModels()
        self.agent: NodeAgent | None = None
        self._task: asyncio.Task[None] | None = None
        self._seen: set[ProcessIdentity] = set()

    async def start(
        self, mode: EngineMode = EngineMode.REAL, rate: float = 1.0, **settings: Any
    ) -> None:
        """Run an agent in this process."""
        chosen = {
            "engines": mode,
            "directory": self.directory,
            "fork_server_socket": self.fork_server_socket,
            "preload": (),
            "node": "n1",
        }
        agent_settings = NodeAgentSettings(**(chosen | settings))
        now_ms = real_now_ms()
        clock = SystemClock(Anchor(real_ms=now_ms, virtual_ms=now_ms, rate=rate))
        claim = subnet_of(agent_settings)
        self.agent = build_agent(agent_settings, claim.subnet, self.outside(), clock)
        self._lock = claim.lock
        self._task = asyncio.create_task(self.agent.run())
        await asyncio.sleep(0)

    def outside(self) -> Outside:
        """What the agent sees of everything but this machine."""
        return Outside(source=self.pods, sink=self.pods, configs=self.configs, models=self.models)

    async def stop(self) -> None:
        """End the agent as a signal would; processes live on."""
        assert self._task is not None
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task
        if self._lock is not None:
            self._lock.close()
        self._task = None

    def check(self) -> None:
        """Raise what the agent failed with, if it did."""
        if self._task is not None and self._task.done():
            self._task.result()

    def status(self, uid: str) -> Mapping[str, Any]:
        self.check()
        return self.pods.statuses.get(uid, {})

    def container(self, uid: str, name: str = "main") -> Mapping[str, Any]:
        """The status of one container."""
        status = self.status(uid)
        every = [*status.get("containerStatuses", []), *status.get("initContainerStatuses", [])]
        return next((entry for entry in every if entry["name"] == name), {})

    def condition(self, uid: str, kind: str = "Ready") -> Mapping[str, Any]:
        conditions = self.status(uid).get("conditions", [])
        return next((entry for entry in conditions if entry["type"] == kind), {})

    def ready(self, uid: str) -> bool:
        return self.condition(uid).get("status") == "True"

    async def until_ready(self, *uids: str, timeout: float = 30) -> None:
        await eventually(
            lambda: all(self.ready(uid) for uid in uids), timeout, f"ready: {self.pods.statuses}"
        )

    async def until_gone(self, uid: str, timeout: float = 30) -> None:
        await eventually(lambda: uid in self.pods.finalised, timeout, f"{uid} finalised")

    def identities(self) -> list[ProcessIdentity]:
        """Every process that was ever started and whose files are still there."""
        found = [identity for path in self.traces() if (identity := read_identity(path))]
        self._seen |= set(found)
        return found

    def traces(self) -> list[Path]:
        """The files of all attempts that were ever begun and whose pods are still there."""
        return list(self.directory.glob("run/*/containers/*/*.identity.json"))

    def running(self) -> list[ProcessIdentity]:
        """Those that live."""
        return [identity for identity in self.identities() if alive(identity)]

    def identity(self, uid: str, name: str = "main", attempt: int = 0) -> ProcessIdentity | None:
        path = self.directory / "run" / uid / "containers" / name / f"{attempt}.identity.json"
        return read_identity(path)

    def log(self, uid: str, name: str = "main") -> str:
        path = self.directory / "run" / uid / f"{name}.log"
        return path.read_text() if path.exists() else ""

    def fork_server(self) -> int:
        """Its pid."""
        with connect_socket(self.fork_server_socket) as connection:
            hello = connection.recv(65536).splitlines()[0]
        return int(json.loads(hello)["server"]["pid"])

    def kill_fork_server(self) -> None:
        assert not self._shared, "other tests use this fork server too"
        os.kill(self.fork_server(), signal.SIGKILL)

    async def clean_up(self) -> None:
        if self._task is not None:
            await self.stop()
        if not self._shared:
            with contextlib.suppress(ProblemsError, ProcessLookupError, IndexError, OSError):
                self.kill_fork_server()
        for identity in [*self.identities(), *self._seen]:
            kill_group(identity)
        assert wait_until_gone(self._seen, 10) == []
