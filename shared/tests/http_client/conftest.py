"""Both loops that services run on."""

import asyncio
from collections.abc import Callable

import pytest
import uvloop

from shared.tests.http_client.certificates import Certificate


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Each test runs on both."""
    del config, item
    return {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    """One for all tests of a process."""
    return Certificate(tmp_path_factory.mktemp("certificate"))
