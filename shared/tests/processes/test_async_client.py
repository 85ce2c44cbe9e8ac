import asyncio
import os
import signal

import pytest

from inferbus_contracts.errors import ErrorCode, ProblemsError
from inferbus_shared.processes.client import AsyncForkServerClient
from inferbus_shared.processes.commands import children, spawn
from inferbus_shared.processes.identity import kill_group
from inferbus_shared.processes.session import ChildEvent
from shared.tests.processes.sandbox import Sandbox
from tests.support.eventually import eventually


class Listener:
    """Remembers what a client is told."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.events: list[ChildEvent] = []
        self.lost = 0
        self.client = AsyncForkServerClient(sandbox.socket_path, self.events.append, self._lost)

    def _lost(self) -> None:
        self.lost += 1

    def exits(self) -> dict[str, ChildEvent]:
        return {event.child.name: event for event in self.events if event.exit}


async def test_many_commands_at_once(sandbox: Sandbox) -> None:
    listener = Listener(sandbox)
    specs = [sandbox.spec(f"p{number}", "sleep") for number in range(60)]
    started = await asyncio.gather(*(listener.client.call(spawn(spec)) for spec in specs))
    assert [child.name for child in started] == [spec.name for spec in specs]
    running = await listener.client.call(children())
    assert sorted(child.name for child in running) == sorted(spec.name for spec in specs)
    for child in started:
        kill_group(child.identity)
    await eventually(lambda: len(listener.exits()) == 60)
    assert {event.exit.signal for event in listener.exits().values()} == {signal.SIGKILL}
    listener.client.close()


async def test_an_answer_is_read_before_the_exit_that_follows_it(sandbox: Sandbox) -> None:
    """Otherwise an exit would be told of a process nobody has heard of yet."""
    listener = Listener(sandbox)
    order: list[str] = []

    async def start(name: str) -> None:
        await listener.client.call(spawn(sandbox.spec(name, "leave", "0")))

    names = [f"p{number}" for number in range(20)]
    await asyncio.gather(*(start(name) for name in names))
    await eventually(lambda: len(listener.exits()) == len(names))
    for event in listener.events:
        order.append(f"{event.child.name} {'ended' if event.exit else 'started'}")
    for name in names:
        assert order.index(f"{name} started") < order.index(f"{name} ended")
    listener.client.close()


async def test_a_refused_command_leaves_the_others_alone(sandbox: Sandbox) -> None:
    listener = Listener(sandbox)
    results = await asyncio.gather(
        listener.client.call(spawn(sandbox.spec("a", "nothing"))),
        listener.client.call(spawn(sandbox.spec("b", "sleep"))),
        return_exceptions=True,
    )
    assert isinstance(results[0], ProblemsError)
    assert results[1].name == "b"
    listener.client.close()


async def test_the_death_of_the_server_is_told_once(own_sandbox: Sandbox) -> None:
    listener = Listener(own_sandbox)
    await listener.client.call(children())
    own_sandbox.kill_server()
    await eventually(lambda: listener.lost == 1)
    assert not listener.client.connected
    with pytest.raises(ProblemsError) as caught:
        await listener.client.call(children())
    assert caught.value.problems[0].code is ErrorCode.NOT_RUNNING
    assert listener.lost == 1


async def test_open_commands_fail_when_the_server_dies(own_sandbox: Sandbox) -> None:
    listener = Listener(own_sandbox)
    server = own_sandbox.server()
    os.kill(server.pid, signal.SIGSTOP)
    waiting = asyncio.ensure_future(listener.client.call(children()))
    await asyncio.sleep(0)
    kill_group(server)
    with pytest.raises(ProblemsError, match="gone"):
        await waiting
    assert listener.lost == 1


async def test_closing_is_no_loss(sandbox: Sandbox) -> None:
    listener = Listener(sandbox)
    await listener.client.call(children())
    listener.client.close()
    listener.client.close()
    assert listener.lost == 0


async def test_more_than_a_socket_takes_at_once(sandbox: Sandbox) -> None:
    """Environments of some megabytes have to wait for the server to read."""
    listener = Listener(sandbox)
    large = {f"VARIABLE_{number}": "x" * 100_000 for number in range(10)}
    specs = [sandbox.spec(f"p{number}", "leave", "0", environment=large) for number in range(8)]
    await asyncio.gather(*(listener.client.call(spawn(spec)) for spec in specs))
    await eventually(lambda: len(listener.exits()) == 8)
    assert all(event.exit.code == 0 for event in listener.exits().values())
    listener.client.close()
