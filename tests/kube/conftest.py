"""A real API server with everything of `deploy/` on it."""

import asyncio
import secrets
from collections.abc import Iterator

import pytest

from tests.support.kube_apiserver import KubeApiServer, running_apiserver
from tests.support.kube_manifests import install, install_definitions


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
