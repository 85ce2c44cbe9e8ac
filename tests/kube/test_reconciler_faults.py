"""Everything an API server can do to a reconciler's reads: it recovers, says so, and loses nothing.

What it does to writes: `test_reconciler_service`.
"""

import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from inferbus_contracts.events.scaling import ApplyOutcome
from inferbus_contracts.services import Service
from inferbus_shared.bus.service import Runtime
from tests.fakes.kubernetes import FakeKubernetes, Page
from tests.fakes.kubernetes.crds import leader_worker_set_definition, pod_group_definition
from tests.kube.test_reconciler_service import Stage
from tests.support.eventually import eventually
from tests.support.kube import KubeServer
from tests.support.kube_fleet import KubeFleet, install_definitions
from tests.support.kube_outages import (
    FAST,
    FAULTS,
    MINUTE,
    MOST_CALLS_PER_MINUTE,
    OUTAGE,
    fast_clock,
    named,
    strike,
    watch_failures,
)
from tests.support.nats import NatsServer

USER = Service.WORKLOAD_RECONCILER
SPACE = "default"
METRICS = "inferbus_workload_reconciler_kube"
READ = {
    "modelservings": "ModelServing",
    "leaderworkersets": "LeaderWorkerSet",
    "pods": "Pod",
    "services": "CoreService",
    "controllerrevisions": "ControllerRevision",
    "podgroups": "PodGroup",
    "nodes": "Node",
}
"""What the reconciler follows."""


@pytest_asyncio.fixture
async def blind(
    nats_server: NatsServer, fake_kube_server: KubeServer, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[Stage, FakeKubernetes]]:
    """A stage whose reconciler alone is struck by faults: what users do arrives."""
    fake = fake_kube_server.fake
    assert fake is not None
    for name, value in fake_kube_server.environment(USER).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("INFERBUS_KUBE_NAMESPACES", SPACE)
    monkeypatch.setenv("INFERBUS_KUBE_READ_TIMEOUT_SECONDS", "1")
    fake.install(pod_group_definition())
    fake.install(leader_worker_set_definition())
    async with (
        fake_kube_server.calls() as calls,
        nats_server.bus(Service.SPEC_WATCHER) as watcher,
        nats_server.bus(Service.AUTOSCALER) as decider,
    ):
        await install_definitions(calls)
        yield Stage(KubeFleet(calls, SPACE), watcher, decider, nats_server), fake


async def is_ready(runtime: Runtime[Any]) -> bool:
    return await runtime.missing() == {}


async def misses(runtime: Runtime[Any], what: str) -> bool:
    return f"kubernetes {what}" in await runtime.missing()


@pytest.mark.slow
@pytest.mark.parametrize("action", FAULTS, ids=named)
async def test_what_happened_while_it_could_not_look_is_made_good(
    blind: tuple[Stage, FakeKubernetes], action: Any, caplog: pytest.LogCaptureFixture
) -> None:
    stage, fake = blind
    async with stage.service() as runtime:
        await stage.create(replicas=2)
        await stage.settled(2)
        before = await stage.fleet.uids()
        strike(fake, USER, action)
        await eventually(lambda: misses(runtime, "pods"))
        assert watch_failures(runtime.registry, METRICS, "Pod") > 0
        await stage.fleet.delete_pod("x-1-main-0-0")
        await stage.fleet.change("x", {"replicas": 3})
        await stage.told()
        fake.record.clear()
        fake.faults.clear()
        await stage.settled(3)
        await eventually(lambda: is_ready(runtime))
        after = await stage.fleet.uids()
        assert sorted(after) == [f"x-{group}-main-0-0" for group in range(3)]
        assert after["x-0-main-0-0"] == before["x-0-main-0-0"]
        assert after["x-1-main-0-0"] != before["x-1-main-0-0"]
        assert fake.record.count("create", "pods", 201) == 2
    said = {record.getMessage() for record in caplog.records if record.name == "inferbus.kube"}
    assert said >= OUTAGE


@pytest.mark.slow
async def test_a_stalled_watch_is_noticed(
    blind: tuple[Stage, FakeKubernetes], monkeypatch: pytest.MonkeyPatch
) -> None:
    stage, fake = blind
    monkeypatch.setenv("INFERBUS_KUBE_WATCH_TIMEOUT_SECONDS", "2")
    monkeypatch.setenv("INFERBUS_KUBE_WATCH_MARGIN_SECONDS", "0.3")
    async with stage.service() as runtime:
        await stage.create(replicas=2)
        await stage.settled(2)
        before = await stage.fleet.uids()
        assert fake.stall_watches("pods") > 0
        await stage.fleet.delete_pod("x-1-main-0-0")

        async def is_replaced() -> bool:
            return (await stage.fleet.uids())["x-1-main-0-0"] != before["x-1-main-0-0"]

        await eventually(is_replaced)
        assert watch_failures(runtime.registry, METRICS, "Pod") > 0
        await stage.settled(2)
        await eventually(lambda: is_ready(runtime))


@pytest.mark.slow
async def test_objects_that_are_none_stop_no_other(
    blind: tuple[Stage, FakeKubernetes], caplog: pytest.LogCaptureFixture
) -> None:
    """Of every kind that is read: no identity, no number, and a shape that nobody expects."""
    stage, fake = blind
    async with stage.service() as runtime:
        await stage.create(replicas=2)
        await stage.settled(2)
        before = await stage.fleet.uids()
        for plural in READ:
            assert fake.watches(plural), plural
            for line in _junk():
                fake.send_to_watches(line, plural)
        await stage.fleet.change("x", {"replicas": 3})
        await stage.told()
        await stage.settled(3)
        assert before.items() <= (await stage.fleet.uids()).items()
        for kind in READ.values():
            left_out = f"{METRICS}_malformed_objects_total"
            assert runtime.registry.get_sample_value(left_out, {"kind": kind}), kind
        await eventually(lambda: is_ready(runtime))
    told = [record for record in caplog.records if record.getMessage() == "object left out"]
    assert all(any(kind in record.problem for record in told) for kind in READ.values())


def _junk() -> tuple[bytes, ...]:
    return (
        b'{"type": "ADDED", "object": {"metadata": {"name": 7}}}',
        b'{"type": "MODIFIED", "object": []}',
        b'{"type": "ADDED", "object": {"metadata": {"name": "odd", "namespace": "default", '
        b'"uid": "u", "resourceVersion": "many", "labels": {}}}}',
        b'{"type": "ADDED", "object": {"metadata": {"name": "shape", "namespace": "default", '
        b'"uid": "u", "resourceVersion": "1", "labels": ["modelserving.volcano.sh/name"], '
        b'"ownerReferences": 7}, "spec": ["nonsense"], "status": "running"}}',
    )


@pytest.mark.slow
@pytest.mark.parametrize("away", ["stopped", "behind a proxy"])
async def test_a_minute_without_an_api_server_costs_nothing(
    blind: tuple[Stage, FakeKubernetes],
    away: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A decision that falls into the outage is carried out after it, and nothing is hammered."""
    stage, fake = blind
    monkeypatch.setattr("inferbus_shared.kube.client.SystemClock", fast_clock)
    async with stage.service() as runtime:
        made = await stage.create(replicas=2)
        await stage.settled(2)
        before = await stage.fleet.uids()
        began = time.monotonic()
        if away == "stopped":
            await fake.stop()
        else:
            fake.faults.add(Page(503), user=USER, times=None)
            fake.cut_watches()
        fake.record.clear()
        id_ = await stage.decide(made, 3)
        await eventually(lambda: misses(runtime, "pods"))

        await eventually(lambda: time.monotonic() - began > MINUTE / FAST)
        lists = fake.record.count("list", "pods") + fake.record.count("watch", "pods")
        assert lists <= 3 * MOST_CALLS_PER_MINUTE, "pods of both kinds, and other controllers'"
        fake.compact()
        fake.faults.clear()
        if away == "stopped":
            await fake.start()
        answer = await stage.answer(id_)
        assert (answer.outcome, answer.replicas) == (ApplyOutcome.APPLIED, 3)
        await stage.told()
        await stage.settled(3)
        await eventually(lambda: is_ready(runtime))
        after = await stage.fleet.uids()
        assert before.items() <= after.items()
        assert len(after) == 3
    said = {record.getMessage() for record in caplog.records if record.name == "inferbus.kube"}
    assert said >= OUTAGE
