import json
import os
import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from inferbus_contracts.errors import ErrorCode, ProblemsError
from inferbus_shared.processes.client import ForkServerClient
from inferbus_shared.processes.commands import children, spawn, stop
from inferbus_shared.processes.identity import alive, kill_group, send_signal, wait_until_gone
from inferbus_shared.processes.session import ChildEvent
from shared.tests.processes.sandbox import Sandbox
from tests.support.eventually import eventually


def exit_of(client: ForkServerClient, name: str) -> ChildEvent:
    while True:
        event = client.next_event(20)
        assert event is not None, f"no exit of {name} was told"
        if event.exit is not None and event.child.name == name:
            return event


def described(sandbox: Sandbox, **more: Any) -> dict[str, Any]:
    """What a process finds around itself."""
    target = sandbox.folder / "found.json"
    with sandbox.client() as client:
        client.call(spawn(sandbox.spec("looker", "describe", str(target), "second", **more)))
        assert exit_of(client, "looker").exit.code == 0, sandbox.log("looker")
    return json.loads(target.read_text())


@pytest.mark.parametrize(
    ("entry_point", "argument", "code", "said"),
    [
        ("leave", "0", 0, ""),
        ("leave", "7", 7, ""),
        ("raise_system_exit", "no such flag", 1, "no such flag"),
        ("fail", "here", 1, "RuntimeError: no model fits here"),
    ],
)
def test_the_exit_status_is_told_and_written(
    sandbox: Sandbox, entry_point: str, argument: str, code: int, said: str
) -> None:
    with sandbox.client() as client:
        child = client.call(spawn(sandbox.spec("a", entry_point, argument)))
        event = exit_of(client, "a")
    assert event.exit.code == code
    assert event.exit.known
    assert event.exit.signal is None
    assert event.child.identity == child.identity
    assert sandbox.exit_record("a") == event.exit
    assert said in sandbox.log("a")


def test_death_by_a_signal_is_told_as_such(sandbox: Sandbox) -> None:
    with sandbox.client() as client:
        child = client.call(spawn(sandbox.spec("a", "sleep")))
        send_signal(child.identity, signal.SIGTERM)
        event = exit_of(client, "a")
    assert (event.exit.code, event.exit.signal) == (None, signal.SIGTERM)


def test_a_program_is_executed_with_its_own_arguments(sandbox: Sandbox) -> None:
    environment = {"GREETING": "hello", "PATH": os.environ["PATH"]}
    argv = ("sh", "-c", 'echo "$GREETING $0"; exit 3', "you")
    spec = sandbox.spec("a", "", *argv, environment=environment)
    with sandbox.client() as client:
        client.call(spawn(spec))
        assert exit_of(client, "a").exit.code == 3
    assert sandbox.log("a") == "hello you\n"


def test_the_identity_file_is_there_when_the_start_is_answered(sandbox: Sandbox) -> None:
    with sandbox.client() as client:
        child = client.call(spawn(sandbox.spec("a", "sleep")))
        assert sandbox.identity("a") == child.identity
        assert alive(child.identity)
        assert client.call(children()) == [child]


def test_nothing_of_the_fork_server_is_left(sandbox: Sandbox) -> None:
    lock = str(sandbox.folder / "a.lock")
    found = described(sandbox, environment={"GREETING": "hello"}, lock_path=lock)
    descriptors = found["descriptors"]
    listing = [number for number, target in descriptors.items() if target.endswith("/fd")]
    locks = [number for number, target in descriptors.items() if target == lock]
    assert len(locks) == 1
    assert set(descriptors) - set(listing) - set(locks) == {"0", "1", "2"}
    assert descriptors["0"] == "/dev/null"
    assert descriptors["1"] == descriptors["2"] == str(sandbox.folder / "looker.log")
    assert found["environment"] == {"GREETING": "hello"}
    assert found["real_environment"] == ["GREETING"]
    assert found["directory"] == str(sandbox.folder)
    assert found["session"]
    assert found["umask"] == 0o022
    assert found["blocked"] == []
    assert found["signals"] == {
        str(int(signal.SIGTERM)): str(signal.SIG_DFL),
        str(int(signal.SIGCHLD)): str(signal.SIG_DFL),
        str(int(signal.SIGHUP)): str(signal.SIG_DFL),
        str(int(signal.SIGPIPE)): str(signal.SIG_IGN),
    }
    assert found["argv"][1] == "second"
    assert found["threads"] == 1
    assert found["collects_garbage"]


def test_nothing_depends_on_how_the_fork_server_was_started(tmp_path: Path) -> None:
    before = os.umask(0o077)
    box = Sandbox(tmp_path)
    try:
        box.start()
    finally:
        os.umask(before)
    try:
        assert described(box)["umask"] == 0o022
    finally:
        box.clean_up()


def test_an_executed_program_sees_only_what_it_should(sandbox: Sandbox) -> None:
    with sandbox.client() as client:
        lock = str(sandbox.folder / "l")
        client.call(spawn(sandbox.spec("a", "", "ls", "-l", "/proc/self/fd", lock_path=lock)))
        exit_of(client, "a")
    targets = [line.split(" -> ")[1] for line in sandbox.log("a").splitlines() if "->" in line]
    others = [target for target in targets if not target.startswith("/proc/")]
    log = str(sandbox.folder / "a.log")
    assert sorted(others) == sorted(["/dev/null", log, log, lock])


def test_ps_shows_what_a_process_is(sandbox: Sandbox) -> None:
    found = described(sandbox, title="inferbus: pod default/chat-0 engine")
    assert found["comm"] == "inferbus: pod d"
    assert found["command_line"] == "inferbus: pod default/chat-0 engine"


async def test_lines_are_in_the_log_at_once(sandbox: Sandbox) -> None:
    with sandbox.client() as client:
        client.call(spawn(sandbox.spec("a", "speak")))
    said = {"to standard output", "to standard error"}
    await eventually(lambda: set(sandbox.log("a").splitlines()) == said)


def test_random_numbers_of_siblings_differ(sandbox: Sandbox) -> None:
    first = described(sandbox)["random"]
    (sandbox.folder / "looker.identity.json").unlink()
    assert described(sandbox)["random"] != first


def test_descriptors_arrive_at_the_numbers_that_were_asked_for(sandbox: Sandbox) -> None:
    paths = [sandbox.folder / name for name in ("five", "three")]
    files = [os.open(path, os.O_CREAT | os.O_RDWR) for path in paths]
    target = sandbox.folder / "found.json"
    try:
        with sandbox.client() as client:
            spec = sandbox.spec("a", "describe", str(target), passed=(5, 3))
            client.call(spawn(spec, files))
            exit_of(client, "a")
    finally:
        for file in files:
            os.close(file)
    found = json.loads(target.read_text())["descriptors"]
    assert (found["5"], found["3"]) == (str(paths[0]), str(paths[1]))
    kept = [entry.readlink() for entry in Path(f"/proc/{sandbox.server().pid}/fd").iterdir()]
    assert not set(paths) & set(kept)


@pytest.mark.parametrize(
    ("change", "needle"),
    [
        ({"entry_point": "process_stand_ins:nothing"}, "nothing"),
        ({"entry_point": "no_such_module:main"}, "no_such_module"),
        ({"entry_point": "", "argv": ("/no/such/program",)}, "/no/such/program"),
        ({"directory": "/no/such/folder"}, "/no/such/folder"),
        ({"log_path": "/no/such/folder/a.log"}, "/no/such/folder/a.log"),
        ({"lock_path": "/no/such/folder/lock"}, "/no/such/folder/lock"),
    ],
)
def test_what_cannot_start_is_told_by_the_answer(
    sandbox: Sandbox, change: dict[str, Any], needle: str
) -> None:
    with sandbox.client() as client:
        with pytest.raises(ProblemsError, match=needle) as caught:
            client.call(spawn(replace(sandbox.spec("a", "sleep"), **change)))
        assert caught.value.problems[0].code is ErrorCode.PROCESS_FAILED
        assert caught.value.problems[0].object == "a"
        assert "Traceback" not in str(caught.value)


def test_what_failed_to_start_does_not_run(sandbox: Sandbox) -> None:
    with sandbox.client() as client:
        with pytest.raises(ProblemsError):
            client.call(spawn(sandbox.spec("a", "nothing")))
        exit_of(client, "a")
        assert client.call(children()) == []


def test_a_lock_prevents_a_second_start(sandbox: Sandbox) -> None:
    lock = str(sandbox.folder / "pod.lock")
    with sandbox.client() as client:
        first = client.call(spawn(sandbox.spec("a", "sleep", lock_path=lock)))
        with pytest.raises(ProblemsError) as caught:
            client.call(spawn(sandbox.spec("b", "sleep", lock_path=lock)))
        assert caught.value.problems[0].code is ErrorCode.ALREADY_RUNNING
        assert sandbox.identity("b") is None
        kill_group(first.identity)
        exit_of(client, "a")
        client.call(spawn(sandbox.spec("b", "sleep", lock_path=lock)))


def test_one_start_for_one_identity_file(sandbox: Sandbox) -> None:
    with sandbox.client() as client:
        client.call(spawn(sandbox.spec("a", "leave", "0")))
        exit_of(client, "a")
        with pytest.raises(ProblemsError) as caught:
            client.call(spawn(sandbox.spec("a", "leave", "0")))
    assert caught.value.problems[0].code is ErrorCode.ALREADY_EXISTS


def test_a_running_name_is_not_given_twice(sandbox: Sandbox) -> None:
    with sandbox.client() as client:
        client.call(spawn(sandbox.spec("a", "sleep")))
        other = sandbox.spec("b", "sleep")
        with pytest.raises(ProblemsError) as caught:
            client.call(spawn(sandbox.spec("a", "sleep", identity_path=other.identity_path)))
    assert caught.value.problems[0].code is ErrorCode.ALREADY_RUNNING


async def test_what_a_process_leaves_behind_dies_with_it(sandbox: Sandbox) -> None:
    pid_file = sandbox.folder / "grandchild"
    with sandbox.client() as client:
        client.call(spawn(sandbox.spec("a", "hold_child", str(pid_file))))
        exit_of(client, "a")
    state = Path(f"/proc/{pid_file.read_text()}/stat")
    await eventually(lambda: not state.exists() or " Z " in state.read_text())


async def test_a_client_that_dies_takes_nothing_with_it(sandbox: Sandbox) -> None:
    with sandbox.client() as client:
        child = client.call(spawn(sandbox.spec("a", "sleep")))
    with sandbox.client() as client:
        assert client.call(children()) == [child]
        kill_group(child.identity)
        assert exit_of(client, "a").exit.signal == signal.SIGKILL


async def test_an_exit_that_nobody_listened_to_is_written(sandbox: Sandbox) -> None:
    with sandbox.client() as client:
        client.call(spawn(sandbox.spec("a", "leave", "5")))
    record = await eventually(lambda: sandbox.exit_record("a"))
    assert record.code == 5


def test_every_client_is_told(sandbox: Sandbox) -> None:
    with sandbox.client() as one, sandbox.client() as other:
        other.call(children())
        one.call(spawn(sandbox.spec("a", "leave", "4")))
        assert exit_of(one, "a").exit == exit_of(other, "a").exit


def test_hundreds_at_once(own_sandbox: Sandbox) -> None:
    def start(worker: int) -> list[str]:
        with own_sandbox.client() as client:
            names = [f"p{worker}-{number}" for number in range(40)]
            for name in names:
                client.call(spawn(own_sandbox.spec(name, "sleep")))
            return names

    with ThreadPoolExecutor(5) as pool:
        names = [name for started in pool.map(start, range(5)) for name in started]
    with own_sandbox.client() as client:
        running = client.call(children())
        assert sorted(child.name for child in running) == sorted(names)
        assert len({child.identity for child in running}) == 200
        for child in running:
            kill_group(child.identity)
        assert wait_until_gone([child.identity for child in running], 30) == []
        ended = [client.next_event(20) for _ in names]
        assert sorted(event.child.name for event in ended) == sorted(names)
        assert client.call(children()) == []
    assert len(list(Path(f"/proc/{own_sandbox.server().pid}/fd").iterdir())) < 15


def test_garbage_on_the_socket_harms_only_its_sender(sandbox: Sandbox) -> None:
    with sandbox.client() as noisy:
        noisy._socket.sendall(b"GET / HTTP/1.1\r\n\r\n")
        with pytest.raises(ProblemsError, match="gone"):
            noisy.next_event(10)
    with sandbox.client() as client:
        assert client.call(children()) == []


@pytest.mark.parametrize(
    "line",
    [
        "[]",
        '{"fds": "many"}',
        '{"do": "spawn", "id": 1}',
        '{"do": "spawn", "id": 1, "spec": 5}',
        '{"do": "spawn", "id": 1, "spec": {"name": "a"}}',
        '{"do": "adopt", "id": 1, "child": "me"}',
        '{"do": "listen", "id": 1, "name": "x", "host": "127.0.0.1", "port": "web", "workers": []}',
        '{"do": "keep", "id": 1, "name": "x"}',
        '{"do": "fly", "id": 1}',
        '{"do": null}',
        "{}",
    ],
)
def test_a_request_that_makes_no_sense_is_refused(sandbox: Sandbox, line: str) -> None:
    with sandbox.client() as noisy:
        noisy._socket.sendall(line.encode() + b"\n")
        while b"IB-4008" not in (said := noisy._socket.recv(65536)) and said:
            pass
    with sandbox.client() as client:
        assert client.call(children()) == []


def test_stop_ends_the_server_and_no_child(own_sandbox: Sandbox) -> None:
    server = own_sandbox.server()
    with own_sandbox.client() as client:
        child = client.call(spawn(own_sandbox.spec("a", "sleep")))
        client.call(stop())
    assert wait_until_gone([server], 10) == []
    assert not own_sandbox.socket_path.exists()
    assert alive(child.identity)


def test_idle_means_asleep(own_sandbox: Sandbox) -> None:
    """A server with nothing to do makes no system call: its context switches stand still."""
    server = own_sandbox.server()

    def switches() -> int:
        status = Path(f"/proc/{server.pid}/status").read_text()
        return int(status.split("voluntary_ctxt_switches:")[1].split()[0])

    with own_sandbox.client() as client:
        client.call(spawn(own_sandbox.spec("a", "sleep")))
        client.call(children())
        before = switches()
        subprocess.run(["sleep", "0.3"], check=True)
        assert switches() - before <= 1
