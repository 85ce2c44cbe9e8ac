"""The spec-watcher as the program it is, and the `inferbus` command, on a cluster."""

import asyncio
import contextlib
import json
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import yaml

from inferbus_contracts.services import Service
from tests.kube.test_spec_watcher_api import inside
from tests.kube.test_spec_watcher_facts import serving
from tests.support.kube import KubeServer
from tests.support.kube_watcher import Cluster, read, saying
from tests.support.nats import NatsServer

PROGRAMS = Path(sys.executable).parent


@contextlib.asynccontextmanager
async def spec_watcher(nats: NatsServer, kube: KubeServer, namespace: str) -> AsyncIterator[None]:
    environment = {
        **nats.environment("w"),
        **kube.environment(Service.SPEC_WATCHER),
        "INFERBUS_SPEC_WATCHER_SUBSTRATE": "kubernetes",
        "INFERBUS_KUBE_NAMESPACES": namespace,
    }
    process = await asyncio.create_subprocess_exec(
        PROGRAMS / "inferbus-spec-watcher", env=environment
    )
    try:
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        assert await process.wait() == 0


async def inferbus(nats: NatsServer, *words: object) -> tuple[int, str]:
    """A command's exit code and what it printed."""
    process = await asyncio.create_subprocess_exec(
        PROGRAMS / "inferbus",
        *map(str, words),
        env={**nats.environment("cli"), "INFERBUS_DIR": str(nats.directory / "none")},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    out, _ = await process.communicate()
    return process.returncode or 0, out.decode()


async def test_objects_from_manifest_to_deletion(cluster: Cluster, tmp_path: Path) -> None:
    manifest = tmp_path / "chat.yaml"
    manifest.write_text(yaml.safe_dump(inside(serving(), cluster.namespace)))
    where = ("-n", cluster.namespace)
    async with spec_watcher(cluster.nats, cluster.server, cluster.namespace):
        code, out = await inferbus(cluster.nats, "apply", "-f", manifest)
        applied = f"modelserving/chat (namespace {cluster.namespace})"
        assert (code, out) == (0, f"{applied} created\n")
        stored = await saying(
            cluster.calls, "ModelServing", cluster.namespace, "chat", Accepted=("True", "Accepted")
        )
        _, out = await inferbus(cluster.nats, "apply", "-f", manifest)
        assert out == f"{applied} unchanged\n"
        _, out = await inferbus(cluster.nats, "get", "ms/chat", *where, "-o", "json")
        assert json.loads(out)["metadata"]["uid"] == stored["metadata"]["uid"]
        code, _ = await inferbus(cluster.nats, "delete", "ms/chat", *where)
        assert code == 0
        assert await read(cluster.calls, "ModelServing", cluster.namespace, "chat") is None
