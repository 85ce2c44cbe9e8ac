import fcntl
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from inferbus_contracts.errors import ErrorCode, ProblemsError
from inferbus_shared.processes.client import ForkServerClient
from inferbus_shared.processes.commands import children, spawn
from inferbus_shared.processes.identity import alive, kill_group
from shared.tests.processes.sandbox import Sandbox


def test_whoever_starts_it_there_is_one(tmp_path: Path) -> None:
    box = Sandbox(tmp_path)
    with ThreadPoolExecutor(4) as pool:
        started = list(pool.map(lambda _: box.start(), range(4)))
    try:
        assert started.count(True) == 1
        with box.client() as client:
            assert client.call(children()) == []
    finally:
        box.clean_up()


def test_it_is_nobodys_child(own_sandbox: Sandbox) -> None:
    status = Path(f"/proc/{own_sandbox.server().pid}/status").read_text()
    parent = int(status.split("PPid:")[1].split()[0])
    assert parent != os.getpid()
    assert str(own_sandbox.socket_path).encode() not in Path(f"/proc/{parent}/cmdline").read_bytes()


def test_it_starts_again_where_one_was_killed(own_sandbox: Sandbox) -> None:
    before = own_sandbox.server()
    own_sandbox.kill_server()
    assert own_sandbox.socket_path.exists()
    assert own_sandbox.start()
    assert own_sandbox.server() != before


def test_a_module_that_cannot_be_imported_is_named(tmp_path: Path) -> None:
    box = Sandbox(tmp_path)
    with pytest.raises(ProblemsError, match="inferbus_no_such_module") as caught:
        box.start(("json", "inferbus_no_such_module"))
    assert caught.value.problems[0].code is ErrorCode.PROCESS_FAILED
    with pytest.raises(ProblemsError):
        box.client()


def test_a_module_that_starts_a_thread_is_refused(tmp_path: Path) -> None:
    box = Sandbox(tmp_path)
    with pytest.raises(ProblemsError, match="thread") as caught:
        box.start(("process_stand_in_thread",))
    assert caught.value.problems[0].value == "process_stand_in_thread"


def test_it_ends_when_whoever_wants_it_is_killed_meanwhile(tmp_path: Path) -> None:
    gate, socket_path = tmp_path / "gate", tmp_path / "fork.sock"
    os.mkfifo(gate)
    config = {
        "socket_path": str(socket_path),
        "log_path": str(tmp_path / "fork.log"),
        "preload": ["process_stand_in_gate"],
    }
    command = [sys.executable, "-m", "inferbus_shared.processes", json.dumps(config)]
    environment = {
        **os.environ,
        "PYTHONPATH": str(Path(__file__).parent),
        "PROCESS_STAND_IN_GATE": str(gate),
    }
    starter = subprocess.Popen(command, env=environment)
    with gate.open("wb"):
        starter.kill()
        starter.wait()
    with (tmp_path / "fork.sock.lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
    assert not socket_path.exists()
    assert "Traceback" not in (tmp_path / "fork.log").read_text()


def test_children_share_what_was_imported_before(tmp_path: Path) -> None:
    box = Sandbox(tmp_path)
    box.start(("aiohttp", "process_stand_ins"))
    try:
        with box.client() as client:
            child = client.call(spawn(box.spec("a", "sleep")))
        rollup = Path(f"/proc/{child.identity.pid}/smaps_rollup").read_text()
        sizes = dict(line.split(":") for line in rollup.splitlines()[1:])
        resident, private = (
            sum(int(sizes[name].split()[0]) for name in names)
            for names in (["Rss"], ["Private_Dirty", "Private_Clean"])
        )
        assert private < resident / 3
    finally:
        box.clean_up()


def test_without_a_server_clients_are_told(tmp_path: Path) -> None:
    with pytest.raises(ProblemsError, match="no fork server") as caught:
        ForkServerClient(tmp_path / "fork.sock")
    assert caught.value.problems[0].code is ErrorCode.NOT_RUNNING


def test_a_folder_deeper_than_a_socket_address_is_long(tmp_path: Path) -> None:
    folder = tmp_path / ("deep" * 20) / ("deeper" * 20)
    folder.mkdir(parents=True)
    box = Sandbox(folder)
    box.start()
    try:
        with box.client() as client:
            child = client.call(spawn(box.spec("a", "sleep")))
        assert alive(child.identity)
    finally:
        box.clean_up()


def test_a_server_that_dies_fails_the_open_command(own_sandbox: Sandbox) -> None:
    with own_sandbox.client() as client:
        kill_group(own_sandbox.server())
        with pytest.raises(ProblemsError) as caught:
            client.call(children())
    assert caught.value.problems[0].code is ErrorCode.NOT_RUNNING
