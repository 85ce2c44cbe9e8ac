"""The fork server is everybody's parent: killed, it takes nobody with it, and is replaced."""

import os
import signal
from functools import partial
from pathlib import Path

import pytest

from inferbus_cli.platform.overview import SUPERVISOR
from inferbus_shared.processes.identity import ProcessIdentity, alive, read_identity
from tests.support.eventually import eventually
from tests.support.load import running_load
from tests.support.platform import Platform, model_manifests, running_platform


def parent(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("PPid:"))


def pids(platform: Platform) -> dict[str, int | None]:
    return {name: row.pid for name, row in platform.processes().items()}


def engines(platform: Platform) -> dict[str, ProcessIdentity]:
    """Containers by the path of their identity file."""
    found = {}
    for path in platform.directory.pods.rglob("*.json"):
        identity = read_identity(path)
        if identity is not None and alive(identity):
            found[str(path)] = identity
    return found


def is_new(platform: Platform, name: str, killed: int) -> bool:
    return platform.pid(name) != killed


@pytest.mark.slow
async def test_everything_runs_on_and_is_looked_after_when_the_fork_server_is_killed() -> None:
    with running_platform("--startup", "0") as platform:
        platform.apply(*model_manifests("chat"))
        await eventually(lambda: platform.complete("chat").status == 200, timeout=30)
        before, containers = pids(platform), engines(platform)
        assert containers
        fork_server = parent(platform.pid("autoscaler"))
        async with running_load(platform.router) as load:
            load.clients("chat", 2)
            await eventually(lambda: load.counts.good > 20)
            os.kill(fork_server, signal.SIGKILL)
            served = load.counts.good
            await eventually(lambda: load.counts.good > served + 20)
            assert pids(platform) == before
            assert engines(platform) == containers

            for name in ("autoscaler", "nats", "router-0"):
                await eventually(partial(is_new, platform, name, platform.kill(name)), timeout=30)
            child = platform.pid("autoscaler")
            assert parent(child) not in (fork_server, 1)
            assert load.counts.refused == 0, load.counts

        for engine in containers.values():
            os.kill(engine.pid, signal.SIGKILL)
        await eventually(lambda: len(engines(platform)) == len(containers), timeout=30)
        await eventually(lambda: platform.complete("chat").status == 200, timeout=30)
        assert platform.processes()[SUPERVISOR].state == "ready"
