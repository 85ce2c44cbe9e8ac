import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent))

from node_agent_world import World


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    """An agent that runs real processes, all of which are gone after the test."""
    world = World(tmp_path)
    try:
        yield world
    finally:
        await world.clean_up()
