"""A real API server with everything of `deploy/` on it, and servers with a substrate on them."""

import asyncio
import secrets
import sys
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from inferbus_contracts.services import Service
from tests.fakes.kubernetes import FakeKubernetes
from tests.support.kube import REAL, KubeServer
from tests.support.kube_apiserver import KubeApiServer, running_apiserver
from tests.support.kube_manifests import install, install_definitions
from tests.support.kube_stage import KubeStage
from tests.support.planner_cases import PLANNER_TESTS

# The planner's tests and their helpers import each other by their bare names.
sys.path.append(str(PLANNER_TESTS))


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


def _fake(folder: Path) -> Callable[[AsyncExitStack], Any]:
    async def enter(stack: AsyncExitStack) -> KubeServer:
        fake = await stack.enter_async_context(FakeKubernetes(Service, keep_calls=100))
        return KubeServer("fake", fake.url, fake.tokens, folder, fake=fake)

    return enter


def _real(folder: Path) -> Callable[[AsyncExitStack], Any]:
    async def enter(stack: AsyncExitStack) -> KubeServer:
        # Not the one that other tests share: the definition of PodGroups comes and goes.
        real = await asyncio.to_thread(stack.enter_context, running_apiserver())
        return KubeServer("real", real.url, real.tokens, folder, real.certificate_authority)

    return enter


@pytest.fixture(scope="session", params=["fake", REAL])
def kube_stage(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[KubeStage]:
    """A server with the substrate on it, one for all tests that ask for it."""
    enter = _real if request.param == "real" else _fake
    made = KubeStage(enter(tmp_path_factory.mktemp("stage")))
    try:
        yield made
    finally:
        made.close()
