"""A Docker engine for tests that need one; where there is none they are skipped, saying why."""

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.compose import compose


@contextlib.contextmanager
def docker_engine(image: str) -> Iterator[Any]:
    """A client of an engine that answers and has, or gets, an image; skips the test otherwise."""
    docker: Any = pytest.importorskip("docker")
    asked = compose("ls", check=False)
    if asked.returncode != 0:
        pytest.skip(f"no Docker engine answers: {asked.stderr.strip()}")
    client = docker.from_env()
    try:
        try:
            client.images.get(image)
        except docker.errors.ImageNotFound:
            try:
                client.images.pull(image)
            except docker.errors.APIError as error:
                pytest.skip(f"the image {image} can't be had: {error}")
        yield client
    finally:
        client.close()
