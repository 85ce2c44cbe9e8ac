"""Agents and fork servers that are killed: nothing dies, doubles or is forgotten."""

import asyncio
import contextlib
import fcntl
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from node_agent_builders import container, deleted, pod
from node_agent_world import World

from inferbus_shared.processes.identity import alive, wait_until_gone
from tests.support.eventually import eventually

READY = {"exec": {"command": ["true"]}, "periodSeconds": 1}


class AgentProcess:
    """An agent of its own process, beside a world whose files it shares."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.directory = world.directory
        self._process: subprocess.Popen[bytes] | None = None
        (self.directory / "pods").mkdir(exist_ok=True)

    def start(self, **settings: str) -> None:
        named = {f"INFERBUS_NODE_AGENT_{name.upper()}": text for name, text in settings.items()}
        with (self.directory / "agent.log").open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, str(Path(__file__).with_name("folder_agent.py")), self.directory],
                env={
                    **os.environ,
                    "INFERBUS_NODE_AGENT_ENGINES": "real",
                    "INFERBUS_NODE_AGENT_PRELOAD": "[]",
                    **named,
                },
                stdout=log,
                stderr=log,
            )

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait(10)

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def log(self) -> str:
        return (self.directory / "agent.log").read_text()

    def apply(self, document: dict[str, Any]) -> str:
        uid: str = document["metadata"]["uid"]
        path = self.directory / "pods" / f"{uid}.json"
        path.with_suffix(".new").write_text(json.dumps(document))
        path.with_suffix(".new").replace(path)
        return uid

    def remove(self, uid: str) -> None:
        (self.directory / "pods" / f"{uid}.json").unlink()

    def status(self, uid: str) -> dict[str, Any]:
        path = self.directory / "status" / f"{uid}.json"
        return json.loads(path.read_text()) if path.exists() else {}

    def container(self, uid: str) -> dict[str, Any]:
        return self.status(uid)["containerStatuses"][0]

    def ready(self, uid: str) -> bool:
        conditions = {entry["type"]: entry for entry in self.status(uid).get("conditions", [])}
        return conditions.get("Ready", {}).get("status") == "True"

    async def until_ready(self, *uids: str) -> None:
        await eventually(lambda: all(self.ready(uid) for uid in uids), 30, "all ready")


@pytest.fixture
def agent(own_world: World) -> Iterator[AgentProcess]:
    agent = AgentProcess(own_world)
    yield agent
    with contextlib.suppress(AssertionError):
        agent.kill()


def sleeper(name: str) -> dict[str, Any]:
    return pod(name, container("main", "sleep", "600", readinessProbe=READY))


async def test_a_killed_agent_costs_no_process(own_world: World, agent: AgentProcess) -> None:
    agent.start()
    uids = [agent.apply(sleeper(f"p{number}")) for number in range(5)]
    await agent.until_ready(*uids)
    before = own_world.running()
    assert len(before) == 5
    agent.kill()
    agent.start()
    new = agent.apply(sleeper("new"))
    await agent.until_ready(new)
    assert sorted(before, key=str) == sorted(
        (identity for identity in own_world.running() if identity != own_world.identity(new)),
        key=str,
    )
    for uid in uids:
        assert agent.ready(uid)
        assert agent.container(uid)["restartCount"] == 0


@pytest.mark.slow
async def test_an_adopted_pod_keeps_its_address_and_its_times(
    own_world: World, agent: AgentProcess
) -> None:
    agent.start()
    uid = agent.apply(sleeper("a"))
    await agent.until_ready(uid)
    before = agent.status(uid)
    agent.kill()
    (agent.directory / "status" / f"{uid}.json").unlink()
    agent.start()
    await agent.until_ready(uid)
    assert agent.status(uid) == before


@pytest.mark.slow
async def test_what_ended_meanwhile_is_noticed_and_started_again(
    own_world: World, agent: AgentProcess
) -> None:
    agent.start()
    uid = agent.apply(sleeper("a"))
    await agent.until_ready(uid)
    agent.kill()
    first = own_world.identity(uid)
    os.kill(first.pid, signal.SIGTERM)
    assert wait_until_gone([first], 10) == []
    agent.start()
    await eventually(lambda: agent.container(uid)["restartCount"] == 1)
    last = agent.container(uid)["lastState"]["terminated"]
    assert last["signal"] == signal.SIGTERM
    await agent.until_ready(uid)
    assert len(own_world.running()) == 1


async def test_what_was_deleted_meanwhile_is_stopped(own_world: World, agent: AgentProcess) -> None:
    agent.start()
    document = sleeper("a")
    uid = agent.apply(document)
    await agent.until_ready(uid)
    agent.kill()
    agent.apply(deleted(document))
    agent.start()
    await eventually(lambda: not (agent.directory / "pods" / f"{uid}.json").exists())
    assert own_world.running() == []


@pytest.mark.slow
async def test_orphans_are_killed(own_world: World, agent: AgentProcess) -> None:
    """Their object went away while no agent was there to see it."""
    agent.start()
    uid, other = agent.apply(sleeper("a")), agent.apply(sleeper("b"))
    await agent.until_ready(uid, other)
    orphan, kept = own_world.identity(uid), own_world.identity(other)
    agent.kill()
    agent.remove(uid)
    agent.start()
    await eventually(lambda: not alive(orphan))
    await eventually(lambda: not (agent.directory / "run" / uid).exists())
    assert alive(kept)


@pytest.mark.slow
async def test_a_folder_that_nobody_understands_is_cleared(
    own_world: World, agent: AgentProcess
) -> None:
    agent.start()
    uid = agent.apply(sleeper("a"))
    await agent.until_ready(uid)
    process = own_world.identity(uid)
    agent.kill()
    (agent.directory / "run" / uid / "pod.json").write_text("{")
    agent.start()
    await eventually(lambda: not alive(process))
    await eventually(lambda: len(own_world.running()) == 1)
    assert own_world.running() != [process]


@pytest.mark.slow
async def test_a_grace_period_goes_on_where_it_was(own_world: World, agent: AgentProcess) -> None:
    agent.start()
    script = 'trap "" TERM; while :; do sleep 0.05; done'
    main = container("main", "sh", "-c", script, readinessProbe=READY)
    document = pod("a", main, terminationGracePeriodSeconds=3)
    uid = agent.apply(document)
    await agent.until_ready(uid)
    process = own_world.identity(uid)
    agent.apply(deleted(document))
    record = agent.directory / "run" / uid / "pod.json"
    await eventually(lambda: '"terminated"' in record.read_text())
    agent.kill()
    assert alive(process)
    agent.start()
    await eventually(lambda: not alive(process), 20)
    await eventually(lambda: not (agent.directory / "pods" / f"{uid}.json").exists())


async def test_a_killed_fork_server_costs_no_process(own_world: World, agent: AgentProcess) -> None:
    agent.start()
    uids = [agent.apply(sleeper(f"p{number}")) for number in range(4)]
    await agent.until_ready(*uids)
    before = own_world.running()
    own_world.kill_fork_server()
    new = agent.apply(sleeper("new"))
    await agent.until_ready(new)
    assert set(before) <= set(own_world.running())
    assert agent.running, agent.log()
    # An adopted process is still watched, only its exit status can't be known any more.
    os.kill(own_world.identity(uids[0]).pid, signal.SIGKILL)
    await eventually(lambda: agent.container(uids[0])["restartCount"] == 1)
    last = agent.container(uids[0])["lastState"]["terminated"]
    assert last["reason"] == "ContainerStatusUnknown"
    await agent.until_ready(*uids)


@pytest.mark.slow
async def test_both_killed_at_once(own_world: World, agent: AgentProcess) -> None:
    agent.start()
    uids = [agent.apply(sleeper(f"p{number}")) for number in range(4)]
    await agent.until_ready(*uids)
    before = own_world.running()
    agent.kill()
    own_world.kill_fork_server()
    agent.start()
    new = agent.apply(sleeper("new"))
    await agent.until_ready(new)
    assert set(before) <= set(own_world.running())
    assert len(own_world.running()) == 5


@pytest.mark.slow
async def test_kills_at_any_moment_of_a_start(own_world: World, agent: AgentProcess) -> None:
    """Whenever the agent or the fork server dies, each pod ends up with one process."""
    uids: list[str] = []
    for number in range(12):
        agent.start()
        await eventually(lambda: (agent.directory / "fork.sock").exists())
        uids.append(agent.apply(sleeper(f"p{number}")))
        await asyncio.sleep(0.04 * number)
        agent.kill()
        if number % 3 == 0:
            with contextlib.suppress(Exception):
                own_world.kill_fork_server()
    agent.start()
    await agent.until_ready(*uids)
    assert len(own_world.running()) == len(uids)
    for uid in uids:
        assert agent.container(uid)["restartCount"] == 0


@pytest.mark.slow
async def test_a_second_agent_is_refused(own_world: World, agent: AgentProcess) -> None:
    agent.start()
    uid = agent.apply(sleeper("a"))
    await agent.until_ready(uid)
    other = AgentProcess(own_world)
    other.start()
    await eventually(lambda: not other.running)
    assert "another node agent runs the pods of this folder" in other.log()
    assert len(own_world.running()) == 1


async def test_a_process_that_somebody_else_started_is_not_started_again(world: World) -> None:
    """The lock is held by a process of which the agent's own files say nothing yet."""
    await world.start()
    await world.until_ready(world.pods.apply(pod("first", container("main", "sleep", "600"))))
    document = pod("a", container("main", "sleep", "600"))
    uid = document["metadata"]["uid"]
    folder = world.directory / "run" / uid / "containers" / "main"
    folder.mkdir(parents=True)
    lock = (folder / "lock").open("w")
    fcntl.flock(lock, fcntl.LOCK_EX)
    try:
        world.pods.apply(document)
        await eventually(
            lambda: "lock" in str(world.container(uid).get("state", {}).get("waiting"))
        )
        assert world.identity(uid) is None
    finally:
        lock.close()
    await world.until_ready(uid)


async def test_silence_of_the_source_changes_nothing(world: World) -> None:
    await world.start()
    uid = world.pods.apply(pod("a", container("main", "sleep", "600")))
    await world.until_ready(uid)
    await world.stop()
    world.pods.watch = _silent  # type: ignore[method-assign]
    await world.start()
    await eventually(lambda: world.agent.pods == 1)
    assert len(world.running()) == 1


async def _silent() -> Any:
    await asyncio.Event().wait()
    yield
