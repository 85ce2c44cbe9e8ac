"""A hub and a node that downloads from it.

Makes the helper modules beside the tests importable: with importlib mode pytest does not.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

sys.path.append(str(Path(__file__).parent))

from downloader_forks import Forks
from downloader_node import Node
from model_hub import ModelHub


@pytest.fixture
def hub() -> Iterator[ModelHub]:
    hub = ModelHub()
    yield hub
    hub.close()


@pytest.fixture
def files() -> dict[str, bytes]:
    """A small model: two large files, some small ones, an empty one, a folder."""
    random = Random(7)
    return {
        "config.json": b'{"model_type": "tiny"}',
        "model-1.safetensors": random.randbytes(700_001),
        "model-2.safetensors": random.randbytes(300_000),
        "onnx/model.onnx": random.randbytes(90_000),
        "empty.txt": b"",
    }


@pytest.fixture
def node(hub: ModelHub, files: dict[str, bytes], tmp_path: Path) -> Node:
    hub.put(files)
    return Node(hub, tmp_path)


@pytest.fixture(scope="session")
def fork_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forks]:
    forks = Forks(tmp_path_factory.mktemp("forks"))
    yield forks
    forks.close()


@pytest.fixture
def forks(fork_server: Forks, node: Node) -> Forks:
    """Processes that speak to the hub of this test."""
    fork_server.environment = node.environment()
    return fork_server
