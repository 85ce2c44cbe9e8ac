from collections.abc import Iterator
from pathlib import Path

import pytest

from shared.tests.processes.sandbox import Sandbox


@pytest.fixture(scope="module")
def server_socket(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A fork server that the tests of a module share."""
    box = Sandbox(tmp_path_factory.mktemp("fork-server"))
    box.start()
    yield box.socket_path
    box.clean_up()


@pytest.fixture
def sandbox(tmp_path: Path, server_socket: Path) -> Iterator[Sandbox]:
    """Processes of a shared fork server; all are gone after the test."""
    box = Sandbox(tmp_path, server_socket)
    yield box
    box.clean_up()


@pytest.fixture
def own_sandbox(tmp_path: Path) -> Iterator[Sandbox]:
    """A fork server of the test's own, for tests that end it."""
    box = Sandbox(tmp_path)
    box.start()
    yield box
    box.clean_up()
