"""Pods of the reference platforms, with simulators in the place of their engines."""

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest
from node_agent_builders import container, deleted, pod
from node_agent_world import World

from inferbus_node_agent.policy_containers import EngineMode
from tests.support.eventually import eventually

pytest.importorskip("inferbus_engine_simulator.main")


def engine(**fields: Any) -> dict[str, Any]:
    """An engine container the way ModelBooster writes it: three minutes until its first probe."""
    line = ["python3", "-m", "vllm.entrypoints.openai.api_server", "--model", "org/tiny-0.5B"]
    readiness = {
        "httpGet": {"path": "/health", "port": 8000},
        "initialDelaySeconds": 180,
        "periodSeconds": 5,
    }
    return container(
        "engine", image="vllm/vllm-openai:latest", command=line, readinessProbe=readiness, **fields
    )


async def get(address: str, path: str, port: int = 8000) -> tuple[str, str]:
    reader, writer = await asyncio.open_connection(address, port)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
    answer = (await reader.read()).decode()
    writer.close()
    await writer.wait_closed()
    head, _, body = answer.partition("\r\n\r\n")
    return head.split()[1], body


@pytest.fixture
async def simulated(world: World, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setenv("INFERBUS_ENGINE_SIMULATOR_ACCELERATOR", "instant")
    await world.start(EngineMode.SIMULATED)
    return world


async def test_an_engine_serves_on_its_manifests_port_long_before_its_delay(
    simulated: World,
) -> None:
    uid = simulated.pods.apply(pod("chat-0", engine()))
    await simulated.until_ready(uid)
    code, body = await get(simulated.status(uid)["podIP"], "/v1/models")
    assert code == "200"
    assert json.loads(body)["data"][0]["id"] == "org/tiny-0.5B"


async def test_init_containers_are_counted_as_done(simulated: World) -> None:
    inits = [container("chat-model-downloader", image="kthena/downloader:latest")]
    uid = simulated.pods.apply(pod("chat-0", engine(), initContainers=inits))
    await simulated.until_ready(uid)
    entry = simulated.container(uid, "chat-model-downloader")
    assert entry["state"]["terminated"]["reason"] == "Completed"


async def test_other_containers_answer_on_their_ports(simulated: World) -> None:
    web = container(
        "web",
        image="nginx:1",
        ports=[{"name": "http", "containerPort": 8081}],
        readinessProbe={"httpGet": {"path": "/anything", "port": "http"}},
    )
    uid = simulated.pods.apply(pod("chat-0", engine(), web, container("quiet", image="x:1")))
    await simulated.until_ready(uid)
    assert (await get(simulated.status(uid)["podIP"], "/", 8081))[0] == "200"
    assert len(simulated.running()) == 3


async def test_a_drain_script_lets_running_requests_finish(simulated: World) -> None:
    script = """while true; do
        A=$(curl localhost:8000/metrics | grep vllm:num_requests_running)
        B=$(curl localhost:8000/metrics | grep vllm:num_requests_waiting); done"""
    hook = {"preStop": {"exec": {"command": ["/bin/sh", "-c", script]}}}
    document = pod("chat-0", engine(lifecycle=hook), terminationGracePeriodSeconds=60)
    uid = simulated.pods.apply(document)
    await simulated.until_ready(uid)
    simulated.pods.apply(deleted(document))
    await simulated.until_gone(uid, timeout=15)
    last = simulated.pods.history[-1][1]["containerStatuses"][0]["state"]["terminated"]
    assert last["exitCode"] == 0


async def test_the_platforms_secrets_do_not_reach_a_container(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INFERBUS_ENGINE_SIMULATOR_ACCELERATOR", "instant")
    monkeypatch.setenv("INFERBUS_NATS_CREDENTIALS", "/very/secret")
    script = "env > env.txt; exec sleep 600"
    await world.start(EngineMode.REAL)
    uid = world.pods.apply(pod("a", container("main", "sh", "-c", script)))
    await world.until_ready(uid)
    path = world.directory / "run" / uid / "env.txt"
    await eventually(lambda: "HOSTNAME" in path.read_text())
    assert "very/secret" not in path.read_text()


def memory_kib(pid: int, *names: str) -> int:
    rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
    sizes = dict(line.split(":", 1) for line in rollup.splitlines()[1:])
    return sum(int(sizes[name].split()[0]) for name in names)


async def test_simulators_share_most_of_their_memory(simulated: World) -> None:
    uids = [simulated.pods.apply(pod(f"chat-{number}", engine())) for number in range(4)]
    await simulated.until_ready(*uids)
    for identity in simulated.running():
        private = memory_kib(identity.pid, "Private_Dirty", "Private_Clean")
        assert private < memory_kib(identity.pid, "Rss") / 2
    assert os.getpid() not in [identity.pid for identity in simulated.running()]
