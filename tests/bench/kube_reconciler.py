"""The reconciler on Kubernetes, alone in a process: 1,000 ModelServings with 10,000 pods.

The fake API server is another process, so that each has its own CPU to account for. The facts come
from a real bus that syncs every write, as `inferbus up` starts it.
"""

import time
from dataclasses import dataclass
from typing import Any

from inferbus_contracts.events.control import ControlThawed
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.services import Service
from inferbus_shared.bus.bus import Bus
from tests.bench.figure import Detail, Figure, quantile
from tests.bench.kube_creation import SAMPLES, as_written, bare_writer, creation, in_turns
from tests.bench.kube_fleet import (
    NAMESPACE,
    FakeProcess,
    ServiceProcess,
    fake_process,
    in_parallel,
    model,
    service_process,
)
from tests.bench.processes import cpu_seconds
from tests.support.eventually import eventually
from tests.support.kube_calls import KubeCalls, WatchLines, path_of
from tests.support.kube_fleet import NAME_LABEL, KubeFleet, announce, install_definitions
from tests.support.nats import NatsServer, running_server

SERVICE = Service.WORKLOAD_RECONCILER
PASSES = "pass_seconds_count"
SERVINGS = 1000
GROUPS = 5
PODS = 10 * SERVINGS
CREATED = PODS + SERVINGS
"""Pods, and a snapshot each."""
CHANGES = 100

START_LIMIT_SECONDS = 10.0
MEMORY_LIMIT_MB = 300.0
RESYNC_LIMIT_SECONDS = 5.0
CHANGE_LIMIT_MS = 200.0
PATIENCE_SECONDS = 90.0

LOAD: dict[str, Detail] = {"servings": SERVINGS, "pods": PODS}


@dataclass(frozen=True)
class _Stage:
    """Everything that the steps share."""

    nats: NatsServer
    fake: FakeProcess
    calls: KubeCalls
    fleet: KubeFleet
    watcher: Bus
    people: Bus


async def measure() -> list[Figure]:
    """All figures, on one fleet."""
    with running_server() as nats, fake_process() as fake:
        await nats.provision()
        async with (
            KubeCalls(fake.url, fake.token) as calls,
            nats.bus(Service.SPEC_WATCHER) as watcher,
            nats.bus(Service.CONSOLE) as people,
        ):
            await install_definitions(calls)
            fleet = KubeFleet(calls, NAMESPACE)
            stage = _Stage(nats, fake, calls, fleet, watcher, people)
            await _announce_fleet(stage)
            created = await _create(stage)
            await _start_pods(stage)
            return [created, *await _restart(stage)]


async def _announce_fleet(stage: _Stage) -> None:
    made = await in_parallel(stage.fleet.create(model(number)) for number in range(SERVINGS))
    await in_parallel(announce(stage.watcher, document) for document in made)


async def _create(stage: _Stage) -> Figure:
    """The whole fleet, beside a client that does nothing but write."""
    with fake_process() as other, service_process(stage.nats, stage.fake, SERVICE) as reconciler:
        await eventually(lambda: reconciler.metric("actions_total") >= SAMPLES, PATIENCE_SECONDS)
        found = await stage.calls.get(path_of("pods", NAMESPACE), limit=str(SAMPLES))
        pids = {"reconciler": reconciler.pid, "fake": stage.fake.pid, "bus": stage.nats.pid}
        async with bare_writer(other, [as_written(pod) for pod in found.items]) as writer:
            created, written = await in_turns(reconciler, pids, CREATED, writer)
        return creation(created, written, LOAD)


async def _start_pods(stage: _Stage) -> None:
    names = await stage.fleet.names("pods")
    assert len(names) == PODS, len(names)
    await in_parallel(stage.fleet.set_status(name, "Running", ready=True) for name in names)


async def _restart(stage: _Stage) -> list[Figure]:
    """A start over the whole fleet, and what follows on it."""
    began = time.monotonic()
    with service_process(stage.nats, stage.fake, SERVICE) as reconciler:
        await eventually(
            lambda: reconciler.metric(PASSES) >= SERVINGS, PATIENCE_SECONDS, "all looked at"
        )
        await eventually(lambda: _is_steady(stage), PATIENCE_SECONDS, "every status written")
        seconds, spent = time.monotonic() - began, cpu_seconds(reconciler.pid)
        await eventually(reconciler.is_idle, PATIENCE_SECONDS)
        start = _start(seconds, spent)
        resync = await _resync(stage, reconciler)
        changes = await _changes(stage)
        return [start, resync, changes, _memory(reconciler)]


async def _is_steady(stage: _Stage) -> bool:
    items = (await stage.calls.get(stage.fleet.servings())).items
    return all((one.get("status") or {}).get("availableReplicas") == GROUPS for one in items)


async def _resync(stage: _Stage, reconciler: ServiceProcess) -> Figure:
    """An order about something else makes it look at everything once."""
    before, cpu = reconciler.metric(PASSES), cpu_seconds(reconciler.pid)
    order = ControlThawed(who="bench", why="a look at everything")
    elsewhere = ObjectKey("ModelServing", "elsewhere", "none")
    await stage.people.publish(stage.people.event(order, elsewhere, id="look"))
    await eventually(lambda: reconciler.metric(PASSES) >= before + SERVINGS, PATIENCE_SECONDS)
    return Figure(
        name="kube-resync",
        value=round(cpu_seconds(reconciler.pid) - cpu, 2),
        unit="s of CPU",
        limit=RESYNC_LIMIT_SECONDS,
        meaning="one look at every ModelServing that finds nothing to do",
        configuration=LOAD,
    )


async def _changes(stage: _Stage) -> Figure:
    """From the changed spec on the bus to the first pod that follows from it, as a watch tells."""
    path = path_of("pods", NAMESPACE)
    revision = (await stage.calls.get(path, limit="1")).revision
    delays = []
    async with stage.calls.watch(
        path, resourceVersion=revision, labelSelector=NAME_LABEL, timeoutSeconds="300"
    ) as lines:
        for number in range(CHANGES):
            name = model(number)["metadata"]["name"]
            changed = await stage.fleet.change(name, {"replicas": GROUPS + 1})
            began = time.monotonic()
            await announce(stage.watcher, changed)
            await _first_pod(lines, name)
            delays.append((time.monotonic() - began) * 1000)
    return Figure(
        name="kube-spec-change",
        value=round(quantile(delays, 0.99), 1),
        unit="ms at p99",
        limit=CHANGE_LIMIT_MS,
        meaning="from a changed spec to the first pod created for it, told by a watch: the way "
        "over the bus, the pass, two writes and the watch are in it",
        configuration=LOAD | {"changes": CHANGES},
        detail={"p50_ms": round(quantile(delays, 0.5), 1)},
    )


async def _first_pod(lines: WatchLines, serving: str) -> None:
    while True:
        event: dict[str, Any] | None = await lines.event()
        assert event is not None, "the watch ended"
        labels = event["object"]["metadata"].get("labels") or {}
        if event["type"] == "ADDED" and labels.get(NAME_LABEL) == serving:
            return


def _start(seconds: float, spent: float) -> Figure:
    return Figure(
        name="kube-start",
        value=round(seconds, 2),
        unit="s",
        limit=START_LIMIT_SECONDS,
        meaning="from the start of the process over an existing fleet, whose pods have all become "
        "ready meanwhile, to every status written",
        configuration=LOAD,
        detail={"cpu_seconds": round(spent, 2)},
    )


def _memory(reconciler: ServiceProcess) -> Figure:
    return Figure(
        name="kube-memory",
        value=round(reconciler.memory_mb(), 1),
        unit="MB",
        limit=MEMORY_LIMIT_MB,
        meaning="resident set size of the reconciler's process after all of this",
        configuration=LOAD,
    )
