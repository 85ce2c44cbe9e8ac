import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from inferbus_contracts.errors import ErrorCode, ProblemsError
from inferbus_shared.processes.commands import keep, listen, listeners, release, spawn
from inferbus_shared.processes.identity import kill_group, own_identity, wait_until_gone
from inferbus_shared.processes.listeners import Listeners
from shared.tests.processes.sandbox import Sandbox
from tests.support.eventually import eventually


@pytest.fixture
def table() -> Iterator[Listeners]:
    table = Listeners()
    yield table
    for name in table.names():
        table.release(name)


def ask(address: tuple[str, int]) -> str:
    with socket.create_connection(address, 10) as connection:
        return connection.recv(100).decode()


def test_a_socket_outlives_its_worker(sandbox: Sandbox) -> None:
    with sandbox.client() as client:
        address = client.call(listen("router", "127.0.0.1", 0))
        first = client.call(spawn(sandbox.spec("a", "accept", "first", listeners={3: "router"})))
        assert ask(address) == "first"
        kill_group(first.identity)
        wait_until_gone([first.identity], 10)
        with socket.create_connection(address, 10) as waiting:
            client.call(spawn(sandbox.spec("b", "accept", "second", listeners={3: "router"})))
            assert waiting.recv(100) == b"second"


def test_the_same_name_is_the_same_socket(sandbox: Sandbox) -> None:
    with sandbox.client() as client:
        address = client.call(listen("router", "127.0.0.1", 0))
        assert client.call(listen("router", "127.0.0.1", 0)) == address
        assert client.call(listeners()) == ["router"]
        client.call(release("router"))
        assert client.call(listeners()) == []
        with pytest.raises(ConnectionRefusedError):
            ask(address)


def test_an_unknown_listener_is_told_by_name(sandbox: Sandbox) -> None:
    with sandbox.client() as client, pytest.raises(ProblemsError, match="roter") as caught:
        client.call(spawn(sandbox.spec("a", "sleep", listeners={3: "roter"})))
    assert caught.value.problems[0].code is ErrorCode.NOT_FOUND


def test_a_taken_port_is_told(sandbox: Sandbox) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, sandbox.client() as client:
        port = taken.getsockname()[1]
        with pytest.raises(ProblemsError, match=f"127.0.0.1:{port}") as caught:
            client.call(listen("router", "127.0.0.1", port))
    assert caught.value.problems[0].code is ErrorCode.PORT_IN_USE


def test_a_kept_socket_lives_on_without_its_owner(sandbox: Sandbox) -> None:
    with sandbox.client() as client:
        with socket.create_server(("127.0.0.1", 0)) as mine:
            address = mine.getsockname()
            client.call(keep("mine", mine.fileno()))
        client.call(spawn(sandbox.spec("a", "accept", "kept", listeners={3: "mine"})))
        assert ask(address) == "kept"


async def test_a_new_fork_server_gets_the_socket_back_from_a_worker(own_sandbox: Sandbox) -> None:
    with own_sandbox.client() as client:
        host, port = client.call(listen("router", "127.0.0.1", 0))
        worker = client.call(spawn(own_sandbox.spec("a", "accept", "old", listeners={3: "router"})))
    own_sandbox.kill_server()
    own_sandbox.start()
    os.kill(worker.identity.pid, signal.SIGSTOP)
    state = Path(f"/proc/{worker.identity.pid}/stat")
    await eventually(lambda: " T " in state.read_text())
    with own_sandbox.client() as client, socket.create_connection((host, port), 10) as waiting:
        assert client.call(listen("router", host, port, [worker.identity])) == (host, port)
        kill_group(worker.identity)
        wait_until_gone([worker.identity], 10)
        client.call(spawn(own_sandbox.spec("b", "accept", "new", listeners={3: "router"})))
        assert waiting.recv(100) == b"new"


def test_a_workers_own_socket_is_preferred_to_a_second_one(table: Listeners) -> None:
    with socket.create_server(("127.0.0.1", 0), reuse_port=True) as mine:
        host, port = mine.getsockname()
        assert table.listen("router", host, port, [own_identity()]) == (host, port)
        taken = os.fstat(table.descriptor("router")).st_ino
        assert taken == os.fstat(mine.fileno()).st_ino


def test_without_a_worker_that_listens_a_second_socket_is_bound_beside(table: Listeners) -> None:
    with socket.create_server(("127.0.0.1", 0), reuse_port=True) as mine:
        host, port = mine.getsockname()
        assert table.listen("router", host, port) == (host, port)
        assert os.fstat(table.descriptor("router")).st_ino != os.fstat(mine.fileno()).st_ino
