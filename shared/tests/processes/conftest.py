from collections.abc import Iterator
from pathlib import Path

import pytest

from shared.tests.processes.sandbox import Sandbox


@pytest.fixture
def sandbox(tmp_path: Path) -> Iterator[Sandbox]:
    """A fork server that is gone, with all its children, after the test."""
    box = Sandbox(tmp_path)
    box.start()
    yield box
    box.clean_up()
