"""API servers with everything of `deploy/` on them, and a platform that works on one."""

import asyncio
import secrets
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.scenario.fleet import QUICK
from tests.support import kube_watcher
from tests.support.kube import REAL, KubeServer
from tests.support.kube_apiserver import KubeApiServer
from tests.support.kube_calls import KubeCalls
from tests.support.kube_manifests import governed_apiserver, install_definitions
from tests.support.kube_own import OwnServer
from tests.support.kube_platform import KubePlatform, platform_on
from tests.support.kube_stage import KubeStage, fake_server, real_server
from tests.support.kube_watcher import Cluster
from tests.support.nats import NatsServer
from tests.support.planner_cases import PLANNER_TESTS

# The planner's tests and their helpers import each other by their bare names.
sys.path.append(str(PLANNER_TESTS))


@pytest.fixture(scope="session")
def installed_apiserver() -> Iterator[KubeApiServer]:
    """All kinds and all accounts, as `kubectl apply -f deploy/crds -f deploy/rbac` leaves them."""
    with governed_apiserver() as server:
        asyncio.run(install_definitions(server))
        yield server


@pytest.fixture
def team(installed_apiserver: KubeApiServer) -> str:
    """A namespace of this test alone."""
    name = f"team-{secrets.token_hex(4)}"
    answer = installed_apiserver.call("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    assert answer.status == 201, answer
    return name


@pytest.fixture(scope="module")
def own_apiserver() -> Iterator[KubeApiServer]:
    """One that a module's tests may stop, and define kinds on that others don't expect."""
    with governed_apiserver() as server:
        yield server


@pytest.fixture(params=["fake", REAL])
async def own_server(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[OwnServer]:
    """The same on both kinds of server."""
    if request.param == "fake":
        async with OwnServer.of_fake(tmp_path) as server:
            yield server
    else:
        yield OwnServer.of_real(request.getfixturevalue("own_apiserver"), tmp_path)


@pytest.fixture
async def kube(own_server: OwnServer) -> AsyncIterator[KubePlatform]:
    """A platform on it, which notices load within a second."""
    async with platform_on(own_server.server, environment=QUICK) as platform:
        yield platform


@pytest_asyncio.fixture
async def cluster(
    nats_server: NatsServer, kube_server: KubeServer, kube_calls: KubeCalls, namespace: str
) -> Cluster:
    """A namespace of a server that serves the platform's kinds and LeaderWorkerSets."""
    await kube_watcher.install(
        kube_calls, *kube_watcher.definitions(), kube_watcher.LEADER_WORKER_SETS
    )
    return Cluster(nats_server, kube_server, kube_calls, namespace)


@pytest.fixture(scope="session", params=["fake", REAL])
def kube_stage(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[KubeStage]:
    """A server with the substrate on it, one for all tests that ask for it."""
    enter = real_server if request.param == "real" else fake_server
    made = KubeStage(enter(tmp_path_factory.mktemp("stage")))
    try:
        yield made
    finally:
        made.close()
