"""API servers with everything of `deploy/` on them."""

import asyncio
import secrets
from collections.abc import Iterator

import pytest
import pytest_asyncio

from tests.support import kube_watcher
from tests.support.kube import KubeServer
from tests.support.kube_apiserver import KubeApiServer, running_apiserver
from tests.support.kube_calls import KubeCalls
from tests.support.kube_manifests import install, install_definitions
from tests.support.kube_watcher import Cluster
from tests.support.nats import NatsServer


@pytest.fixture(scope="session")
def installed_apiserver() -> Iterator[KubeApiServer]:
    """All kinds and all accounts, as `kubectl apply -f deploy/crds -f deploy/rbac` leaves them."""
    with running_apiserver() as server:
        asyncio.run(install_definitions(server))
        install(server, "rbac")
        yield server


@pytest.fixture
def team(installed_apiserver: KubeApiServer) -> str:
    """A namespace of this test alone."""
    name = f"team-{secrets.token_hex(4)}"
    answer = installed_apiserver.call("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    assert answer.status == 201, answer
    return name


@pytest_asyncio.fixture
async def cluster(
    nats_server: NatsServer, kube_server: KubeServer, kube_calls: KubeCalls, namespace: str
) -> Cluster:
    """A namespace of a server that serves the platform's kinds and LeaderWorkerSets."""
    await kube_watcher.install(
        kube_calls, *kube_watcher.definitions(), kube_watcher.LEADER_WORKER_SETS
    )
    return Cluster(nats_server, kube_server, kube_calls, namespace)
