"""The reconciler as it runs: a real bus, an API server, and a stand-in for the spec-watcher."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from inferbus_contracts.events.scaling import (
    ApplyOutcome,
    DecisionRecord,
    ScalingApplied,
    ScalingDecided,
)
from inferbus_contracts.events.workload import WorkloadObserved
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.resources.annotations import DECISION_ID
from inferbus_contracts.services import Service
from inferbus_shared.bus.bus import Bus
from inferbus_shared.bus.service import Runtime
from inferbus_workload_reconciler.main import serve
from inferbus_workload_reconciler.settings import WorkloadReconcilerSettings
from tests.fakes.kubernetes import Answer, Cut, Hang, Page
from tests.support.eventually import eventually
from tests.support.kube import KubeServer
from tests.support.kube_calls import KubeCalls, path_of
from tests.support.kube_fleet import KubeFleet, announce, install_definitions, serving
from tests.support.nats import NatsServer
from tests.support.services import running_service

RECORD = DecisionRecord(decider="d", version="1", policy="p", policy_digest="d", input={})
KTHENA = {"app.kubernetes.io/component": "kthena-controller-manager"}


class Stage:
    """A fleet and the bus that tells of it."""

    def __init__(self, fleet: KubeFleet, watcher: Bus, decider: Bus, nats: NatsServer) -> None:
        self.fleet = fleet
        self.watcher = watcher
        self.decider = decider
        self.nats = nats

    async def create(self, **fields: Any) -> dict[str, Any]:
        """A new ModelServing, told of."""
        document = await self.fleet.create(serving(**fields))
        await announce(self.watcher, document)
        return document

    async def told(self, name: str = "x") -> dict[str, Any]:
        """The object as it is now, told of."""
        document = await self.fleet.serving(name)
        await announce(self.watcher, document)
        return document

    @contextlib.asynccontextmanager
    async def service(self, instance: str = "r", **settings: Any) -> AsyncIterator[Runtime[Any]]:
        """One instance of the service."""
        chosen = WorkloadReconcilerSettings.model_validate({"substrate": "kubernetes", **settings})
        async with running_service(self.nats, serve, chosen, instance) as runtime:
            yield runtime

    def key(self, role: str = "") -> ObjectKey:
        return ObjectKey("ModelServing", self.fleet.namespace, "x", role)

    async def decide(self, document: dict[str, Any], desired: int, role: str = "") -> str:
        """A decision about the object as given; its id."""
        metadata = document["metadata"]
        decision = ScalingDecided(
            current=1,
            desired=desired,
            target_uid=metadata["uid"],
            target_generation=metadata["generation"],
            record=RECORD,
        )
        id_ = f"decision-{role}-{metadata['generation']}-{desired}"
        await self.decider.publish(self.decider.event(decision, self.key(role), id=id_))
        return id_

    async def answer(self, decision_id: str, role: str = "") -> ScalingApplied:
        """What became of a decision."""

        async def known() -> ScalingApplied | None:
            last = await self.watcher.last("scaling.applied", self.key(role))
            data = last.data if last else None
            is_it = isinstance(data, ScalingApplied) and data.decision_id == decision_id
            return data if is_it and isinstance(data, ScalingApplied) else None

        return await eventually(known)

    async def settled(self, groups: int) -> None:
        """Wait until so many groups run, and the bus says so."""

        async def is_settled() -> bool:
            await self.fleet.run_pods()
            last = await self.watcher.last("workload.observed", self.key())
            data = last.data if last else None
            assert isinstance(data, WorkloadObserved)
            status = (await self.fleet.serving())["status"]
            return data.ready == data.replicas == groups == status["availableReplicas"]

        await eventually(is_settled, 30)


@pytest_asyncio.fixture
async def stage(
    nats_server: NatsServer,
    kube_server: KubeServer,
    kube_calls: KubeCalls,
    namespace: str,
    monkeypatch: pytest.MonkeyPatch,
) -> AsyncIterator[Stage]:
    for name, value in kube_server.environment(Service.WORKLOAD_RECONCILER).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("INFERBUS_KUBE_NAMESPACES", namespace)
    monkeypatch.setenv("INFERBUS_KUBE_READ_TIMEOUT_SECONDS", "2")
    await install_definitions(kube_calls)
    async with (
        nats_server.bus(Service.SPEC_WATCHER) as watcher,
        nats_server.bus(Service.AUTOSCALER) as decider,
    ):
        yield Stage(KubeFleet(kube_calls, namespace), watcher, decider, nats_server)


async def test_a_decision_goes_through_the_scale_subresource(stage: Stage) -> None:
    async with stage.service():
        made = await stage.create()
        await stage.settled(1)
        id_ = await stage.decide(made, 3)
        answer = await stage.answer(id_)
        assert (answer.outcome, answer.replicas, answer.generation) == (ApplyOutcome.APPLIED, 3, 2)
        document = await stage.told()
        assert (document["spec"]["replicas"], document["metadata"]["generation"]) == (3, 2)
        assert document["metadata"]["annotations"][DECISION_ID] == id_
        entries = document["metadata"]["managedFields"]
        assert any(
            (one["manager"], one.get("subresource")) == ("scale", "scale") for one in entries
        )
        await stage.settled(3)


async def test_a_role_is_scaled_in_one_write(stage: Stage) -> None:
    async with stage.service():
        made = await stage.create()
        await stage.settled(1)
        id_ = await stage.decide(made, 2, "main")
        answer = await stage.answer(id_, "main")
        assert (answer.outcome, answer.replicas, answer.generation) == (ApplyOutcome.APPLIED, 2, 2)
        document = await stage.told()
        (role,) = document["spec"]["template"]["roles"]
        assert role["replicas"] == 2
        assert document["metadata"]["annotations"][DECISION_ID] == id_
        names = ["x-0-main-0-0", "x-0-main-1-0"]
        await eventually(lambda: _equals(stage.fleet.names("pods"), names))


async def test_a_decision_about_an_older_spec_is_a_conflict(stage: Stage) -> None:
    async with stage.service():
        made = await stage.create()
        await stage.settled(1)
        await stage.fleet.change("x", {"replicas": 2})
        answer = await stage.answer(await stage.decide(made, 3))
        assert answer.outcome is ApplyOutcome.CONFLICT
        assert (await stage.fleet.serving())["spec"]["replicas"] == 2


async def test_nothing_is_done_beside_kthena_s_own_controllers(stage: Stage) -> None:
    controller = {
        "metadata": {"name": "kthena", "labels": KTHENA},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }
    await stage.fleet.calls.post(path_of("pods", stage.fleet.namespace), controller)
    async with stage.service() as runtime:
        await stage.create()

        async def is_told() -> bool:
            missing = await runtime.missing()
            return "pod kthena runs" in missing.get("other controllers", "")

        await eventually(is_told)

        async def is_observed() -> bool:
            return await stage.watcher.last("workload.observed", stage.key()) is not None

        await eventually(is_observed)
        assert await stage.fleet.names("pods") == []
        assert await stage.fleet.names("controllerrevisions", "apps") == []
        await stage.fleet.delete_pod("kthena")
        await stage.settled(1)
        await eventually(lambda: _equals(runtime.missing(), {}))


async def test_a_second_instance_has_nothing_to_add(stage: Stage) -> None:
    async with stage.service():
        await stage.create(replicas=2)
        await stage.settled(2)
        before = (await stage.fleet.uids(), await stage.fleet.serving())
        async with stage.service("second"):
            await stage.settled(2)
        assert (await stage.fleet.uids(), await stage.fleet.serving()) == before


@pytest.mark.slow
@pytest.mark.parametrize("kube_server", ["fake"], indirect=True)
@pytest.mark.parametrize(
    "action",
    [
        Answer(500),
        Answer(503),
        Answer(409),
        Answer(429, retry_after_seconds=1),
        Page(),
        Hang(),
        Cut(),
    ],
    ids=lambda action: f"{type(action).__name__}{getattr(action, 'code', '')}",
)
@pytest.mark.parametrize("carried_out", [False, True], ids=["lost", "done"])
async def test_a_fleet_comes_up_whatever_calls_run_into(
    stage: Stage, kube_server: KubeServer, action: Any, carried_out: bool
) -> None:
    fake = kube_server.fake
    assert fake is not None
    async with stage.service():
        for resource in ("pods", "controllerrevisions", "modelservings"):
            verb = "patch" if resource == "modelservings" else "create"
            fake.faults.add(action, verb=verb, resource=resource, times=2, carried_out=carried_out)
        await stage.create(replicas=3)
        await stage.settled(3)
        names = [f"x-{group}-main-0-0" for group in range(3)]
        assert await stage.fleet.names("pods") == names
        assert len(await stage.fleet.names("controllerrevisions", "apps")) == 1


@pytest.mark.parametrize("kube_server", ["fake"], indirect=True)
async def test_an_api_server_that_is_away_costs_nothing(
    stage: Stage, kube_server: KubeServer
) -> None:
    fake = kube_server.fake
    assert fake is not None
    async with stage.service() as runtime:
        await stage.create(replicas=2)
        await stage.settled(2)
        before = await stage.fleet.uids()
        await fake.stop()

        async def is_told() -> bool:
            return any(name.startswith("kubernetes ") for name in await runtime.missing())

        await eventually(is_told)
        fake.compact()
        await fake.start()
        await stage.fleet.change("x", {"replicas": 3})
        await stage.told()
        await stage.settled(3)
        after = await stage.fleet.uids()
        assert before.items() <= after.items()
        await eventually(lambda: _equals(runtime.missing(), {}))


async def _equals(value: Any, wanted: Any) -> bool:
    if asyncio.iscoroutine(value):
        value = await value
    return bool(value == wanted)
