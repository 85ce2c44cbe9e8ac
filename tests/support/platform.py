"""A whole platform for a test, a benchmark or the demo: own folder, own port, no trace left.

It is used as a user would: through the `inferbus` command, the router's port and the bus.
"""

import contextlib
import dataclasses
import json
import os
import signal
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from inferbus_cli.platform.directory import PlatformDirectory
from inferbus_cli.platform.embedded_nats import free_port
from inferbus_cli.platform.overview import ProcessRow, processes
from inferbus_contracts.services import Service
from inferbus_shared.bus.bus import Bus
from inferbus_shared.bus.connection import Connection
from inferbus_shared.bus.provision import read_anchor
from inferbus_shared.clock import SystemClock
from inferbus_shared.processes.identity import ProcessIdentity, alive, read_identity

COMMAND = Path(sys.executable).parent / "inferbus"
COMMAND_SECONDS = 120
MODEL_PORT = 8000
"""Where the engines of `model_manifests` answer."""
SCALING_METRIC = "vllm:num_requests_running"
"""What their policies look at."""


@dataclasses.dataclass(frozen=True)
class Answer:
    """What the router said."""

    status: int
    body: Any


class Platform:
    """One platform; `running_platform` makes and ends it."""

    def __init__(self, root: Path) -> None:
        self.directory = PlatformDirectory(root)
        self.router_port = free_port()

    @property
    def router(self) -> str:
        return f"http://127.0.0.1:{self.router_port}"

    def up(
        self, *options: str, environment: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Start it; `environment` may hold settings of services."""
        port = str(self.router_port)
        return self.inferbus(
            "up", "--detach", "--router-port", port, *options, environment=environment
        )

    def down(self) -> None:
        self.inferbus("down")

    def inferbus(
        self,
        *arguments: str,
        stdin: str | None = None,
        check: bool = True,
        environment: Mapping[str, str] | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Run the command line on this platform; with `check`, a failure fails the test."""
        result = subprocess.run(
            [COMMAND, *arguments, "--dir", str(self.directory.root)],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=COMMAND_SECONDS,
            env={**os.environ, **(environment or {})},
            check=False,
        )
        if check and result.returncode != 0:
            said = f"{result.stdout}\n{result.stderr}"
            raise AssertionError(f"inferbus {' '.join(arguments)}: {result.returncode}\n{said}")
        return result

    def apply(self, *documents: Mapping[str, Any]) -> None:
        """Apply objects as one unit."""
        unit = {"apiVersion": "v1", "kind": "List", "items": list(documents)}
        self.inferbus("apply", "-f", "-", stdin=json.dumps(unit))

    def get(self, kind: str, name: str) -> dict[str, Any]:
        """One object of the namespace `default`."""
        found: dict[str, Any] = json.loads(self.inferbus("get", kind, name, "-o", "json").stdout)
        return found

    def ask(self, path: str, body: Mapping[str, Any] | None = None) -> Answer:
        """One request to the router; a status that isn't 200 is an answer too."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"content-type": "application/json"}
        request = urllib.request.Request(f"{self.router}{path}", data, headers)
        try:
            with urllib.request.urlopen(request, timeout=30) as reply:
                return Answer(reply.status, json.loads(reply.read()))
        except urllib.error.HTTPError as error:
            text = error.read()
            return Answer(error.code, json.loads(text) if text else None)

    def complete(self, model: str, max_tokens: int = 3) -> Answer:
        """A short text completion."""
        body = {"model": model, "prompt": "hello", "max_tokens": max_tokens}
        return self.ask("/v1/completions", body)

    def processes(self) -> dict[str, ProcessRow]:
        """The platform's processes by name, the supervisor among them."""
        return {row.name: row for row in processes(self.directory)}

    def pid(self, name: str) -> int:
        pid = self.processes()[name].pid
        assert pid is not None, f"{name} does not run"
        return pid

    def kill(self, name: str) -> int:
        """`kill -9` one of this platform's processes; its pid was this."""
        pid = self.pid(name)
        os.kill(pid, signal.SIGKILL)
        return pid

    @contextlib.asynccontextmanager
    async def bus(self, service: Service = Service.CLI) -> AsyncIterator[Bus]:
        """The platform's bus, as one of its users."""
        settings = self.directory.bus_settings(service, f"test-{os.getpid()}")
        connection = Connection(service, settings)
        await connection.open()
        try:
            yield Bus(connection, SystemClock(await read_anchor(connection)))
        finally:
            await connection.close()

    def logs(self) -> str:
        """The last lines of every log, for a failure's message."""
        parts = []
        for file in sorted(self.directory.logs.glob("*.log")):
            lines = file.read_text(errors="replace").splitlines()[-20:]
            parts.append("\n".join([f"== {file.name}", *lines]))
        return "\n".join(parts)


@contextlib.contextmanager
def running_platform(
    *options: str, environment: Mapping[str, str] | None = None
) -> Iterator[Platform]:
    """A platform that is up (`inferbus up --detach OPTIONS`), and down and gone afterwards.

    `environment` may hold settings of services.
    """
    with tempfile.TemporaryDirectory(prefix="inferbus-platform-") as folder:
        platform = Platform(Path(folder) / "platform")
        try:
            platform.up(*options, environment=environment)
            yield platform
        except BaseException:
            sys.stderr.write(platform.logs())
            raise
        finally:
            if platform.directory.state_file.exists():
                platform.down()


def engines(platform: Platform) -> dict[str, list[ProcessIdentity]]:
    """The living container processes by the uid of their pod."""
    found: dict[str, list[ProcessIdentity]] = {}
    for path in platform.directory.pods.glob("*/containers/*/*.identity.json"):
        identity = read_identity(path)
        if identity is not None and alive(identity):
            found.setdefault(path.parents[2].name, []).append(identity)
    return found


def model_manifests(
    name: str,
    *,
    replicas: int = 1,
    engine_arguments: Sequence[str] = (),
    scaling: tuple[int, int] | None = None,
) -> list[dict[str, Any]]:
    """A simulated model that serves under `name`: workload, server, route.

    With `scaling` (least, most), also a policy that wants two running requests per replica.
    """
    group, networking = "workload.serving.volcano.sh/v1alpha1", "networking.serving.volcano.sh"
    port = MODEL_PORT
    container = {
        "name": "engine",
        "image": "vllm/vllm-openai:v0.9.0",
        "args": ["--model", "demo/model", "--served-model-name", name, *engine_arguments],
        "ports": [{"containerPort": port}],
        "readinessProbe": {"httpGet": {"path": "/health", "port": port}},
    }
    role = {
        "name": "main",
        "replicas": 1,
        "workerReplicas": 0,
        "entryTemplate": {
            "metadata": {"labels": {"app": name}},
            "spec": {"containers": [container]},
        },
    }
    template = {"roles": [role]}
    documents: list[dict[str, Any]] = [
        {
            "apiVersion": group,
            "kind": "ModelServing",
            "metadata": {"name": name},
            "spec": {
                "replicas": replicas,
                "schedulerName": "volcano",
                "template": template,
            },
        },
        {
            "apiVersion": f"{networking}/v1alpha1",
            "kind": "ModelServer",
            "metadata": {"name": name},
            "spec": {
                "inferenceEngine": "vLLM",
                "workloadSelector": {"matchLabels": {"app": name}},
                "workloadPort": {"port": port},
            },
        },
        {
            "apiVersion": f"{networking}/v1alpha1",
            "kind": "ModelRoute",
            "metadata": {"name": name},
            "spec": {
                "modelName": name,
                "rules": [{"name": "all", "targetModels": [{"modelServerName": name}]}],
            },
        },
    ]
    if scaling is not None:
        documents += _scaling(group, name, *scaling, port=port)
    return documents


def _scaling(group: str, name: str, least: int, most: int, *, port: int) -> list[dict[str, Any]]:
    metric = {"metricName": SCALING_METRIC, "targetValue": "2"}
    endpoint = {"uri": "/metrics", "port": port}
    return [
        {
            "apiVersion": group,
            "kind": "AutoscalingPolicy",
            "metadata": {"name": name},
            "spec": {"metrics": [metric]},
        },
        {
            "apiVersion": group,
            "kind": "AutoscalingPolicyBinding",
            "metadata": {"name": name},
            "spec": {
                "policyRef": {"name": name},
                "homogeneousTarget": {
                    "target": {
                        "targetRef": {"kind": "ModelServing", "name": name},
                        "metricEndpoint": endpoint,
                    },
                    "minReplicas": least,
                    "maxReplicas": most,
                },
            },
        },
    ]
