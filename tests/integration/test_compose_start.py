"""How a container of compose.yaml starts, and how it is asked whether it is ready."""

import asyncio
import importlib.util
import ipaddress
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

import pytest
from prometheus_client import CollectorRegistry

from inferbus_shared.processes.identity import identify_child, own_identity, write_identity
from inferbus_shared.telemetry import HealthServer
from tests.support.compose import ROOT
from tests.support.eventually import eventually
from tests.support.nats import NatsServer

SCRIPTS = ROOT / "deploy/docker/bin"
SHARED = {"INFERBUS_SHARED_NETWORK": "yes"}


class Container:
    """The file system of a container, whose program says what it was started with."""

    def __init__(self, folder: Path) -> None:
        self.run = folder / "run"
        self.run.mkdir(parents=True)
        self.programs = folder / "bin"
        self.programs.mkdir()

    def start(
        self, service: str, *arguments: str, settings: Mapping[str, str] | None = None
    ) -> list[str]:
        """The arguments and the INFERBUS_… environment that the program finds."""
        program = self.programs / ("inferbus" if service == "cli" else f"inferbus-{service}")
        program.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\nenv | grep ^INFERBUS_\n')
        program.chmod(0o755)
        result = subprocess.run(
            ["sh", SCRIPTS / "start.sh", *arguments],
            env={
                "PATH": f"{self.programs}:{os.environ['PATH']}",
                "INFERBUS_SERVICE": service,
                "INFERBUS_RUN": str(self.run),
                **(settings or {}),
            },
            capture_output=True,
            text=True,
            timeout=30,
            check=True,
        )
        return result.stdout.splitlines()

    def setting(self, name: str, service: str, settings: Mapping[str, str] | None = None) -> str:
        found = dict(line.partition("=")[::2] for line in self.start(service, settings=settings))
        return found[name]


def script(name: str) -> ModuleType:
    """A script of the image, as a module."""
    spec = importlib.util.spec_from_file_location(name, SCRIPTS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def healthy() -> ModuleType:
    return script("healthy")


def test_an_instance_is_named_once_and_unlike_any_other(tmp_path: Path) -> None:
    one, other = Container(tmp_path / "one"), Container(tmp_path / "other")
    name = one.setting("INFERBUS_INSTANCE", "router")
    assert name.startswith("router-")
    assert one.setting("INFERBUS_INSTANCE", "router") == name, "a restart keeps it"
    assert other.setting("INFERBUS_INSTANCE", "router") != name


def test_pages_are_open_to_the_containers_own_network(tmp_path: Path) -> None:
    container = Container(tmp_path)
    assert container.setting("INFERBUS_SPEC_WATCHER_HTTP_HOST", "spec-watcher") == "0.0.0.0"
    assert container.setting("INFERBUS_SPEC_WATCHER_HTTP_PORT", "spec-watcher") == "9100"
    assert (container.run / "pages").read_text() == "0.0.0.0 9100"


@pytest.mark.parametrize("identity", ["3f2a91bc", "00000000", "ffffffff", "12340089", "abcd7f0b"])
def test_pages_in_a_shared_network_have_an_address_of_their_own(
    tmp_path: Path, identity: str
) -> None:
    container = Container(tmp_path)
    (container.run / "instance").write_text(identity)
    address = ipaddress.ip_address(
        container.setting("INFERBUS_ROUTER_HTTP_HOST", "router", settings=SHARED)
    )
    assert address in ipaddress.ip_network("127.0.128.0/17"), "neither pods' nor localhost"
    assert int(address) & 0x7FFF == int(identity, 16) & 0x7FFF
    assert (container.run / "pages").read_text() == f"{address} 9100"


def test_the_command_line_gets_its_arguments(tmp_path: Path) -> None:
    assert Container(tmp_path).start("cli", "apply", "-f", "a b")[:3] == ["apply", "-f", "a b"]


def test_the_node_agent_waits_for_the_machine_that_lives_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    after_machine = script("after_machine")
    note = tmp_path / script("machine").READY
    earlier = subprocess.Popen(["sleep", "60"])
    write_identity(note, identify_child(earlier.pid))
    earlier.kill()
    earlier.wait()
    waited: list[float] = []

    def appear(seconds: float) -> None:
        waited.append(seconds)
        write_identity(note, own_identity())

    started: list[tuple[str, list[str]]] = []
    monkeypatch.setattr(after_machine.time, "sleep", appear)
    monkeypatch.setattr(
        after_machine.os, "execvp", lambda program, words: started.append((program, words))
    )
    after_machine.main(tmp_path, ["start.sh", "x"])
    assert len(waited) == 1, "the machine of before is gone, the one of now is there"
    assert started == [("start.sh", ["start.sh", "x"])]


async def test_a_container_is_ready_when_its_program_says_so(
    tmp_path: Path, healthy: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = {"bus": "away"}

    async def readiness() -> Mapping[str, str]:
        return missing

    pages = HealthServer(CollectorRegistry(), readiness)
    await pages.start("127.0.0.1", 0)
    note = tmp_path / "pages"
    monkeypatch.setattr(healthy.own_pages, "__defaults__", (note,))

    async def exit_code() -> int:
        code: int = await asyncio.to_thread(healthy.main, [])
        return code

    assert await exit_code() == 1, "not started yet"
    note.write_text(f"0.0.0.0 {pages.port}")
    assert await exit_code() == 1, "the bus is away"
    missing.clear()
    assert await exit_code() == 0
    await pages.stop()
    assert await exit_code() == 1, "gone"


async def test_the_nats_server_is_ready_when_it_says_so(
    nats_server: NatsServer, healthy: ModuleType, tmp_path: Path
) -> None:
    async def ready(folder: Path) -> bool:
        code: int = await asyncio.to_thread(healthy.main, [str(folder)])
        return code == 0

    await eventually(lambda: ready(nats_server.directory))
    assert not await ready(tmp_path)
