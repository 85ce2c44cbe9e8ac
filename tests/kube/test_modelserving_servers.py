"""Numbered cases of the ModelServing specification that only an API server can put to the test.

Calls that fail on the wire, objects that are replaced behind one's back, a controller that is
killed. What else has a number is in `test_modelserving_cases`.
"""

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from workload_builders import role, serving
from workload_world import World

from contracts.tests.conftest import build
from inferbus_contracts.admission import admit
from inferbus_contracts.errors import ProblemsError
from inferbus_contracts.services import Service
from tests.fakes.kubernetes import Answer
from tests.kube.numbered_admission import ACCEPTED_BY_NUMBER, REFUSED_BY_NUMBER
from tests.support.eventually import eventually
from tests.support.kube import KubeServer
from tests.support.kube_calls import KubeCalls
from tests.support.kube_fleet import KubeFleet, announce, install_definitions
from tests.support.kube_stage import KubeStage
from tests.support.kube_world import worlds_on
from tests.support.nats import NatsServer

pytestmark = pytest.mark.slow

PROGRAM = Path(sys.executable).parent / "inferbus-workload-reconciler"


@pytest.fixture
def worlds(kube_stage: KubeStage) -> Iterator[KubeStage]:
    with worlds_on(kube_stage):
        yield kube_stage


def fails(worlds: KubeStage, verb: str, resource: str) -> None:
    """The next call of this kind is refused by the server itself."""
    if worlds.server.fake is None:
        pytest.skip("a real server fails when it likes: there the call is lost before it is sent")
    worlds.server.fake.faults.add(Answer(500), verb=verb, resource=resource, times=1)


def test_ms_t37_nothing_is_made_without_its_snapshot(worlds: KubeStage) -> None:
    world = World(serving(2))
    world.plan()
    fails(worlds, "create", "controllerrevisions")
    world.reconcile()
    assert world.pod_names() == []
    assert world.condition("ActionFailed")["reason"] == "FailedCreate"
    world.settle()
    assert world.counts() == (2, 2, 2, 2)
    assert world.condition("ActionFailed")["status"] == "False"


def test_ms_t54_a_service_that_the_server_refuses_comes_later(worlds: KubeStage) -> None:
    world = World(serving(1, [role(workers=1)]))
    world.plan()
    fails(worlds, "create", "services")
    world.reconcile()
    assert world.services() == []
    assert "x-0-prefill-0-0" in world.condition("ActionFailed")["message"]
    world.settle()
    assert world.services() == ["x-0-prefill-0-0"]


def test_ms_t57_a_pod_whose_deletion_fails_goes_later(worlds: KubeStage) -> None:
    world = World(serving(2))
    world.settle()
    world.scale(1)
    fails(worlds, "delete", "pods")
    world.reconcile()
    assert not world.deleting("x-1-prefill-0-0")
    assert world.condition("ActionFailed")["reason"] == "FailedDelete"
    world.settle()
    assert world.pod_names() == ["x-0-prefill-0-0"]


@pytest.mark.parametrize("case", [pytest.param(60, id="MS_T47"), pytest.param(0, id="MS_T48")])
def test_a_deletion_holds_for_the_pod_that_failed_and_no_other(
    worlds: KubeStage, case: int
) -> None:
    """The pod is another by the time the deletion arrives."""
    world = World(serving(1, grace_seconds=case))
    world.settle()
    name = "x-0-prefill-0-0"
    world.crash(name)
    world.reconcile(keep=lambda action: False)
    world.now_ms += case * 1000
    (deletion,) = world.plan().actions
    assert deletion.name == name
    world.vanish(name)
    world.settle()
    replacement = world.uid(name)
    world.carry_out(deletion)
    assert (world.uid(name), world.deleting(name)) == (replacement, False)


def test_ms_t55_a_pod_group_of_another_owner_is_nothing_to_do(worlds: KubeStage) -> None:
    world = World(serving(1))
    world.settle()
    (name,) = world.pod_groups()
    group = next(item for key, item in world.objects.items() if key[1] == name)
    before = world.plan().actions
    group["metadata"]["ownerReferences"][0] |= {"uid": "other", "kind": "Job"}
    assert before == world.plan().actions == ()


def by_number(table: list[tuple[Any, ...]]) -> list[Any]:
    """The cases T74 to T78."""
    return [pytest.param(*case[1:], id=case[0]) for case in table if case[0].startswith("T7")]


@pytest_asyncio.fixture
async def fleet(kube_calls: KubeCalls, namespace: str) -> KubeFleet:
    await install_definitions(kube_calls)
    return KubeFleet(kube_calls, namespace)


@pytest.mark.parametrize(("changes", "text"), by_number(REFUSED_BY_NUMBER))
async def test_what_is_wrong_is_refused_by_the_server_or_by_us(
    kube_server: KubeServer, fleet: KubeFleet, changes: dict[str, Any], text: str
) -> None:
    """The fake knows no CEL: what it takes, or refuses in other words, we refuse in these."""
    document = build("ModelServing", changes)
    document["metadata"]["namespace"] = fleet.namespace
    answer = await fleet.calls.post(fleet.servings(), document, dryRun="All")
    if kube_server.fake is None:
        assert not answer.ok
        assert text in answer.body["message"]
    with pytest.raises(ProblemsError) as refused:
        admit(document)
    assert any(text in f"{one.field} {one.message}" for one in refused.value.problems)


@pytest.mark.parametrize("changes", by_number(ACCEPTED_BY_NUMBER))
async def test_what_is_right_is_taken_by_the_server_and_by_us(
    fleet: KubeFleet, changes: dict[str, Any]
) -> None:
    document = build("ModelServing", changes)
    document["metadata"]["namespace"] = fleet.namespace
    answer = await fleet.calls.post(fleet.servings(), document, dryRun="All")
    assert answer.ok, answer
    assert admit(document).key.name == document["metadata"]["name"]


@contextlib.asynccontextmanager
async def controller(
    nats: NatsServer, kube: KubeServer, namespace: str
) -> AsyncIterator[asyncio.subprocess.Process]:
    """The program; killed in the end."""
    environment = {
        **nats.environment("r"),
        **kube.environment(Service.WORKLOAD_RECONCILER),
        "INFERBUS_WORKLOAD_RECONCILER_SUBSTRATE": "kubernetes",
        "INFERBUS_KUBE_NAMESPACES": namespace,
        "INFERBUS_WORKLOAD_RECONCILER_HTTP_PORT": "0",
    }
    process = await asyncio.create_subprocess_exec(PROGRAM, env=environment)
    try:
        yield process
    finally:
        process.kill()
        await process.wait()


@pytest.mark.parametrize("pods_by_then", [0, 9])
async def test_ms_t50_a_controller_that_is_killed_leaves_every_pod_once(
    kube_server: KubeServer,
    kube_calls: KubeCalls,
    nats_server: NatsServer,
    namespace: str,
    pods_by_then: int,
) -> None:
    await install_definitions(kube_calls)
    fleet = KubeFleet(kube_calls, namespace)
    roles = [role(workers=2), role("decode", workers=1)]
    document = serving(5, roles, schedulerName="default-scheduler")
    document["metadata"] = {"name": "x", "annotations": {}}
    expected = {
        f"x-{group}-{name}-0-{pod}"
        for group in range(5)
        for name, pods in (("prefill", 3), ("decode", 2))
        for pod in range(pods)
    }
    async with nats_server.bus(Service.SPEC_WATCHER) as watcher:
        async with controller(nats_server, kube_server, namespace):
            await announce(watcher, await fleet.create(document))

            async def is_under_way() -> bool:
                return len(await fleet.names("pods")) >= pods_by_then

            await eventually(is_under_way, 30)
        before = await fleet.uids()
        async with controller(nats_server, kube_server, namespace):

            async def is_complete() -> bool:
                await fleet.run_pods()
                status = (await fleet.serving()).get("status", {})
                return status.get("availableReplicas") == 5

            await eventually(is_complete, 30)
    after = await fleet.uids()
    assert after.keys() == expected
    assert before.items() <= after.items()
