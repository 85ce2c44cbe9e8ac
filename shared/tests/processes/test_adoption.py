import json
import os
import signal

from inferbus_shared.processes.commands import adopt, children, spawn
from inferbus_shared.processes.identity import alive, kill_group, wait_until_gone
from inferbus_shared.processes.records import ChildInfo, ExitRecord
from shared.tests.processes.sandbox import Sandbox
from tests.support.eventually import eventually


def info(sandbox: Sandbox, name: str) -> ChildInfo:
    """What the files beside a process say of it."""
    identity = sandbox.identity(name)
    assert identity is not None
    return ChildInfo(name, identity, str(sandbox.folder / f"{name}.exit.json"))


def test_killing_the_fork_server_kills_no_child(own_sandbox: Sandbox) -> None:
    with own_sandbox.client() as client:
        started = [client.call(spawn(own_sandbox.spec(f"p{n}", "sleep"))) for n in range(5)]
    own_sandbox.kill_server()
    assert all(alive(child.identity) for child in started)
    assert own_sandbox.start()
    with own_sandbox.client() as client:
        assert client.call(children()) == []
        assert all(client.call(adopt(info(own_sandbox, f"p{n}"))) for n in range(5))
        running = client.call(children())
    assert [child.identity for child in running] == [child.identity for child in started]
    assert all(child.adopted for child in running)


def test_the_end_of_an_adopted_process_is_told_with_its_status_unknown(
    own_sandbox: Sandbox,
) -> None:
    with own_sandbox.client() as client:
        child = client.call(spawn(own_sandbox.spec("a", "sleep")))
    own_sandbox.kill_server()
    own_sandbox.start()
    with own_sandbox.client() as client:
        assert client.call(adopt(info(own_sandbox, "a")))
        os.kill(child.identity.pid, signal.SIGKILL)
        event = client.next_event(20)
        assert client.call(children()) == []
    assert event is not None
    assert event.exit is not None
    assert not event.exit.known
    assert own_sandbox.exit_record("a") == event.exit


def test_what_ended_while_no_server_ran_is_recorded_as_unknown(own_sandbox: Sandbox) -> None:
    with own_sandbox.client() as client:
        child = client.call(spawn(own_sandbox.spec("a", "sleep")))
    own_sandbox.kill_server()
    kill_group(child.identity)
    wait_until_gone([child.identity], 10)
    own_sandbox.start()
    with own_sandbox.client() as client:
        assert client.call(adopt(info(own_sandbox, "a"))) is False
    record = own_sandbox.exit_record("a")
    assert isinstance(record, ExitRecord)
    assert not record.known
    assert record.identity == child.identity


async def test_a_status_that_was_seen_is_not_forgotten_by_adopting(own_sandbox: Sandbox) -> None:
    with own_sandbox.client() as client:
        client.call(spawn(own_sandbox.spec("a", "leave", "9")))
        await eventually(lambda: own_sandbox.exit_record("a"))
        assert client.call(adopt(info(own_sandbox, "a"))) is False
    assert own_sandbox.exit_record("a").code == 9


def test_adopting_an_own_child_changes_nothing(own_sandbox: Sandbox) -> None:
    with own_sandbox.client() as client:
        child = client.call(spawn(own_sandbox.spec("a", "sleep")))
        assert client.call(adopt(child))
        assert client.call(children()) == [child]
        kill_group(child.identity)
        assert client.next_event(20).exit is None
        assert client.next_event(20).exit.signal == signal.SIGKILL


def test_the_lock_outlives_the_fork_server(own_sandbox: Sandbox) -> None:
    """A process that nobody adopted yet still can't be started a second time."""
    lock = str(own_sandbox.folder / "pod.lock")
    with own_sandbox.client() as client:
        client.call(spawn(own_sandbox.spec("a", "sleep", lock_path=lock)))
    own_sandbox.kill_server()
    own_sandbox.start()
    with own_sandbox.client() as client:
        body = spawn(own_sandbox.spec("b", "sleep", lock_path=lock))
        refused = client._session.encode(body)
        client._socket.sendall(refused[1])
        while True:
            answers = [json.loads(line) for line in client._socket.recv(65536).splitlines()]
            if any("id" in answer for answer in answers):
                break
    assert answers[-1]["problems"][0]["code"] == "IB-4005"
    assert own_sandbox.identity("b") is None
