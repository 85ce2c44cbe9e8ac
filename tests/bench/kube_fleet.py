"""A thousand ModelServings on the fake API server, each program a process of its own."""

import asyncio
import contextlib
import json
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Awaitable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from inferbus_contracts.services import Service
from tests.bench.processes import cpu_seconds
from tests.support.kube_fleet import serving
from tests.support.nats import NatsServer

NAMESPACE = "default"
QUIET_SECONDS = 0.5
IDLE_SHARE = 0.06
"""Of one CPU: what heartbeats and the page with metrics take."""
START_SECONDS = 30.0
AT_ONCE = 32
"""Calls under way at a time: as many as the reconciler's by default."""

Document = dict[str, Any]
ResultT = TypeVar("ResultT")


@dataclass(frozen=True)
class FakeProcess:
    """A fake API server in a process of its own."""

    pid: int
    url: str
    token: str


@contextlib.contextmanager
def fake_process() -> Iterator[FakeProcess]:
    """One that listens."""
    with tempfile.TemporaryDirectory(prefix="inferbus-kube-") as folder:
        file = Path(folder) / "ports.json"
        command = [sys.executable, "-m", "tests.fakes.kubernetes", "--ports-file", str(file)]
        process = subprocess.Popen(command)
        try:
            told = _told(file)
            yield FakeProcess(process.pid, told["url"], told["tokens"]["admin"])
        finally:
            process.terminate()
            process.wait()


def _told(file: Path) -> dict[str, Any]:
    """What a process writes when it listens."""
    deadline = time.monotonic() + START_SECONDS
    while not file.exists():
        assert time.monotonic() < deadline, "the fake API server doesn't start"
        time.sleep(0.01)
    told: dict[str, Any] = json.loads(file.read_text())
    return told


@dataclass(frozen=True)
class ServiceProcess:
    """One run of a service on the fake."""

    service: Service
    pid: int
    port: int

    def metric(self, name: str) -> float:
        """The sum of a metric over its labels; 0 until the service answers."""
        try:
            with urllib.request.urlopen(
                f"http://127.0.0.1:{self.port}/metrics", timeout=10
            ) as page:
                lines = page.read().decode().splitlines()
        except OSError:
            return 0.0
        full = f"inferbus_{self.service.value.replace('-', '_')}_{name}"
        found = [line for line in lines if line.startswith((f"{full}{{", f"{full} "))]
        return sum(float(line.rpartition(" ")[2]) for line in found)

    def memory_mb(self) -> float:
        """Its resident set size: what its libraries share with others is counted whole."""
        rollup = Path(f"/proc/{self.pid}/smaps_rollup").read_text()
        line = next(one for one in rollup.splitlines() if one.startswith("Rss:"))
        return int(line.split()[1]) * 1024 / 1e6

    async def is_idle(self) -> bool:
        """Whether it takes next to nothing of the CPU."""
        before = cpu_seconds(self.pid)
        await asyncio.sleep(QUIET_SECONDS)
        return cpu_seconds(self.pid) - before <= QUIET_SECONDS * IDLE_SHARE


@contextlib.contextmanager
def service_process(
    nats: NatsServer, fake: FakeProcess, service: Service
) -> Iterator[ServiceProcess]:
    """A service on the fake and on this bus."""
    with tempfile.TemporaryDirectory(prefix="inferbus-token-") as folder:
        file = Path(folder) / "token"
        file.write_text(fake.token)
        port = _free_port()
        environment = {
            **nats.environment("bench"),
            f"{service.setting_prefix}SUBSTRATE": "kubernetes",
            f"{service.setting_prefix}HTTP_PORT": str(port),
            "INFERBUS_KUBE_SERVER": fake.url,
            "INFERBUS_KUBE_TOKEN_FILE": str(file),
        }
        binary = Path(sys.executable).parent / f"inferbus-{service.value}"
        with (Path(folder) / "log").open("wb") as log:
            process = subprocess.Popen([binary], env=environment, stderr=log)
        try:
            yield ServiceProcess(service, process.pid, port)
        finally:
            process.terminate()
            process.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def model(number: int) -> Document:
    """A ModelServing with five groups of two roles."""
    document = serving(f"m{number:04}", replicas=5)
    (role,) = document["spec"]["template"]["roles"]
    container = {
        "name": "engine",
        "image": "registry.example/engines/vllm:0.11",
        "args": ["--model", "/models/base", "--port", "8000", "--max-num-seqs", "64"],
        "ports": [{"containerPort": 8000}],
        "env": [{"name": f"SETTING_{index}", "value": "on"} for index in range(8)],
        "resources": {"limits": {"nvidia.com/gpu": "1", "memory": "80Gi"}},
        "readinessProbe": {"httpGet": {"path": "/health", "port": 8000}},
        "volumeMounts": [{"name": "models", "mountPath": "/models"}],
    }
    volumes = [{"name": "models", "hostPath": {"path": "/models"}}]
    template = {"spec": {"containers": [container], "volumes": volumes}}
    roles = [{**role, "name": name, "entryTemplate": template} for name in ("prefill", "decode")]
    document["spec"]["template"]["roles"] = roles
    return document


async def in_parallel(work: Iterable[Awaitable[ResultT]]) -> list[ResultT]:
    """The results of all of them; some are under way at a time."""
    slots = asyncio.Semaphore(AT_ONCE)

    async def one(item: Awaitable[ResultT]) -> ResultT:
        async with slots:
            return await item

    return await asyncio.gather(*map(one, work))
