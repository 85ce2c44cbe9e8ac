import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from inferbus_shared.processes.start import connect_socket, start_fork_server

sys.path.append(str(Path(__file__).parent))

from node_agent_world import World

PRELOAD = ("inferbus_engine_simulator.main", "inferbus_engine_simulator.responder")


@pytest.fixture(scope="session")
def fork_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The socket of a fork server that has the simulators loaded, for all tests."""
    folder = tmp_path_factory.mktemp("fork-server")
    socket_path = folder / "fork.sock"
    start_fork_server(socket_path, PRELOAD, folder / "fork.log")
    yield socket_path
    with connect_socket(socket_path) as connection:
        hello = json.loads(connection.recv(65536).splitlines()[0])
    os.kill(hello["server"]["pid"], signal.SIGKILL)


@pytest.fixture
async def world(tmp_path: Path, fork_server: Path) -> AsyncIterator[World]:
    """An agent that runs real processes, all of which are gone after the test."""
    world = World(tmp_path, fork_server)
    try:
        yield world
    finally:
        await world.clean_up()


@pytest.fixture
async def own_world(tmp_path: Path) -> AsyncIterator[World]:
    """The same with a fork server of its own, for tests that kill it."""
    world = World(tmp_path)
    try:
        yield world
    finally:
        await world.clean_up()
