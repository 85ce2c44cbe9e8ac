"""Fixtures that the tests of several packages share."""

import logging
from collections.abc import AsyncIterator, Iterator

import hypothesis
import pytest
import pytest_asyncio

from inferbus_shared.telemetry import PairFormatter
from tests.support.kube_apiserver import KubeApiServer
from tests.support.kube_manifests import governed_apiserver
from tests.support.nats import NatsServer, running_server

pytest_plugins = ["tests.support.kube"]

# A busy machine is no defect: a property's time limit is that of every test.
hypothesis.settings.register_profile("inferbus", deadline=None)
hypothesis.settings.load_profile("inferbus")


@pytest.fixture(autouse=True)
def no_log_outlives_its_test() -> Iterator[None]:
    """A program run inside a test logs to a standard error that pytest closes after the test.

    The command line silences the loggers of its process, too.
    """
    root, own = logging.getLogger(), logging.getLogger("inferbus")
    levels = root.level, own.level
    yield
    root.setLevel(levels[0])
    own.setLevel(levels[1])
    for handler in tuple(root.handlers):
        if isinstance(handler.formatter, PairFormatter):
            root.removeHandler(handler)


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


@pytest.fixture(scope="session")
def kube_apiserver() -> Iterator[KubeApiServer]:
    """A real API server, one for all tests of this process: each uses a namespace of its own.

    The services have the rights that `deploy/rbac` gives them, and no others.
    Whoever kills it, or takes away kinds that others define too, takes `governed_apiserver`.
    """
    with governed_apiserver() as server:
        yield server
