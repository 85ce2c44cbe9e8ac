"""The numbered cases of the ModelServing specification, each on both API servers.

They are the planner's own tests, in worlds whose objects an API server holds: what the planner is
to decide is stated once, and here it has to come true through views, HTTP and another's admission.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from workload_world import world_type

from inferbus_contracts.services import Service
from tests.fakes.kubernetes import FakeKubernetes
from tests.support.kube import REAL, KubeServer
from tests.support.kube_apiserver import running_apiserver
from tests.support.kube_stage import KubeStage
from tests.support.kube_world import KubernetesWorld, stage
from tests.support.planner_cases import planner_tests

pytestmark = pytest.mark.slow


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


@pytest.fixture(scope="module", params=["fake", REAL])
def kube_stage(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[KubeStage]:
    """A server with the substrate on it, one for all tests of this module."""
    enter = _real if request.param == "real" else _fake
    made = KubeStage(enter(tmp_path_factory.mktemp("stage")))
    try:
        yield made
    finally:
        made.close()


@pytest.fixture(autouse=True)
def worlds(kube_stage: KubeStage) -> Iterator[None]:
    """Tests that ask for a world get one on the server, and have to ask."""
    before = kube_stage.worlds
    tokens = stage.set(kube_stage), world_type.set(KubernetesWorld)
    try:
        yield
    finally:
        stage.reset(tokens[0])
        world_type.reset(tokens[1])
    assert kube_stage.worlds > before, "no world was made: this test says nothing about a server"


def _collect() -> None:
    for test in planner_tests():
        assert test.__name__ not in globals(), f"two tests are called {test.__name__}"
        globals()[test.__name__] = test


_collect()
