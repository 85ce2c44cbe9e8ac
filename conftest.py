"""Fixtures that the tests of several packages share."""

from collections.abc import AsyncIterator

import hypothesis
import pytest
import pytest_asyncio

from tests.support.nats import NatsServer, running_server

# A busy machine is no defect: a property's time limit is that of every test.
hypothesis.settings.register_profile("inferbus", deadline=None)
hypothesis.settings.load_profile("inferbus")


@pytest_asyncio.fixture
async def nats_server() -> AsyncIterator[NatsServer]:
    """A NATS server of this test alone, with every stream, durable and bucket on it."""
    with running_server() as server:
        await server.provision()
        yield server


@pytest.fixture
def bare_nats_server() -> object:
    """A NATS server of this test alone, with nothing on it."""
    with running_server() as server:
        yield server
