"""A thousand ModelServings on the fake API server, each program a process of its own."""

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inferbus_contracts.canonical import digest
from inferbus_contracts.events.spec import SpecChanged
from inferbus_contracts.events.workload import WorkloadObserved
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.services import Service
from inferbus_shared.bus.bus import Bus
from tests.support.eventually import eventually
from tests.support.kube_calls import KubeCalls
from tests.support.kube_fleet import KubeFleet, serving
from tests.support.nats import NatsServer

NAMESPACE = "default"
AT_ONCE = 32
"""Calls under way at a time: as many as the reconciler's by default."""

Document = dict[str, Any]


@contextlib.asynccontextmanager
async def fake_process() -> AsyncIterator[tuple[str, str]]:
    """URL and token of a fake API server in a process of its own."""
    with tempfile.TemporaryDirectory(prefix="inferbus-kube-") as folder:
        file = Path(folder) / "ports.json"
        command = [sys.executable, "-m", "tests.fakes.kubernetes", "--ports-file", str(file)]
        process = subprocess.Popen(command)
        try:
            told = json.loads(await eventually(file.read_text, 30))
            yield told["url"], told["tokens"]["admin"]
        finally:
            process.terminate()
            process.wait()


@dataclass
class ReconcilerProcess:
    """One run of the service."""

    process: subprocess.Popen[bytes]
    port: int

    @property
    def pid(self) -> int:
        return self.process.pid

    def metric(self, name: str) -> float:
        """The sum of a metric over its labels."""
        url = f"http://127.0.0.1:{self.port}/metrics"
        with urllib.request.urlopen(url, timeout=10) as response:
            lines = response.read().decode().splitlines()
        full = f"inferbus_workload_reconciler_{name}"
        found = [line for line in lines if line.startswith((f"{full}{{", f"{full} "))]
        return sum(float(line.rpartition(" ")[2]) for line in found)

    def passes(self) -> float:
        """How many passes it made."""
        return self.metric("pass_seconds_count")

    def memory_mb(self) -> float:
        """Its proportional set size."""
        rollup = Path(f"/proc/{self.pid}/smaps_rollup").read_text()
        line = next(one for one in rollup.splitlines() if one.startswith("Pss:"))
        return int(line.split()[1]) * 1024 / 1e6


@contextlib.contextmanager
def reconciler_process(
    nats: NatsServer, url: str, token: str, port: int
) -> Iterator[ReconcilerProcess]:
    """The service on the fake and on this bus."""
    with tempfile.TemporaryDirectory(prefix="inferbus-token-") as folder:
        file = Path(folder) / "token"
        file.write_text(token)
        environment = {
            **nats.environment("bench"),
            "INFERBUS_WORKLOAD_RECONCILER_SUBSTRATE": "kubernetes",
            "INFERBUS_WORKLOAD_RECONCILER_HTTP_PORT": str(port),
            "INFERBUS_KUBE_SERVER": url,
            "INFERBUS_KUBE_TOKEN_FILE": str(file),
        }
        binary = Path(sys.executable).parent / "inferbus-workload-reconciler"
        process = subprocess.Popen([binary], env=environment)
        try:
            yield ReconcilerProcess(process, port)
        finally:
            os.kill(process.pid, signal.SIGTERM)
            process.wait()


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


async def announce(bus: Bus, document: Mapping[str, Any]) -> None:
    """What the spec-watcher says of an object."""
    metadata = document["metadata"]
    known = {name: metadata[name] for name in ("name", "namespace", "uid", "generation")}
    body = {
        "apiVersion": document["apiVersion"],
        "kind": document["kind"],
        "metadata": known,
        "spec": document["spec"],
    }
    key = ObjectKey(document["kind"], metadata["namespace"], metadata["name"])
    fact = SpecChanged(
        uid=metadata["uid"],
        generation=metadata["generation"],
        digest=digest(body),
        object=body,
        changed_by="bench",
    )
    id_ = f"{key}-{metadata['uid']}-{metadata['generation']}"
    await bus.publish(bus.event(fact, key, id=id_))


async def in_parallel(works: Sequence[Any]) -> list[Any]:
    """All of them, some at a time."""
    slots = asyncio.Semaphore(AT_ONCE)

    async def one(work: Any) -> Any:
        async with slots:
            return await work

    return await asyncio.gather(*map(one, works))
