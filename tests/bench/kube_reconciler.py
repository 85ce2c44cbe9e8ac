"""The reconciler on Kubernetes, alone in a process: 1,000 ModelServings with 10,000 pods.

The fake API server is another process, so that each has its own CPU to account for. Rates are
compared by CPU time: on a machine with fewer free cores than programs, seconds say how they share
it, not how fast either is.
"""

import time
from dataclasses import dataclass
from typing import Any

from inferbus_contracts.events.control import ControlThawed
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.services import Service
from inferbus_shared.bus.bus import Bus
from tests.bench.figure import Detail, Figure, quantile
from tests.bench.kube_fleet import (
    NAMESPACE,
    FakeProcess,
    ReconcilerProcess,
    fake_process,
    in_parallel,
    model,
    reconciler_process,
)
from tests.bench.processes import cpu_seconds
from tests.support.eventually import eventually
from tests.support.kube_calls import KubeCalls, WatchLines, path_of
from tests.support.kube_fleet import NAME_LABEL, KubeFleet, announce, install_definitions
from tests.support.nats import NatsServer, running_server

SERVINGS = 1000
GROUPS = 5
PODS = 10 * SERVINGS
CREATED = PODS + SERVINGS
"""Pods, and a snapshot each."""
PROBE_WRITES = 1500
CHANGES = 100

START_LIMIT_SECONDS = 10.0
MEMORY_LIMIT_MB = 300.0
CREATE_LIMIT = 0.8
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


@dataclass(frozen=True)
class _Rate:
    """Something done so often, and what it took."""

    count: float
    seconds: float
    cpu_seconds: float

    @property
    def per_second(self) -> float:
        return self.count / self.seconds

    @property
    def per_cpu_second(self) -> float:
        return self.count / self.cpu_seconds


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
            writes = await _write_rate(stage)
            await _announce_fleet(stage)
            created = await _create(stage)
            await _start_pods(stage)
            return [_creation(created, writes), *await _restart(stage)]


async def _write_rate(stage: _Stage) -> _Rate:
    """How fast the fake takes pods from a client that does nothing else."""
    await stage.calls.post("/api/v1/namespaces", {"metadata": {"name": "probe"}})
    spec = model(0)["spec"]["template"]["roles"][0]["entryTemplate"]["spec"]
    pods = [{"metadata": {"name": f"p{number}"}, "spec": spec} for number in range(PROBE_WRITES)]
    began, cpu = time.monotonic(), cpu_seconds(stage.fake.pid)
    await in_parallel(stage.calls.post(path_of("pods", "probe"), pod) for pod in pods)
    spent = cpu_seconds(stage.fake.pid) - cpu
    return _Rate(PROBE_WRITES, time.monotonic() - began, spent)


async def _announce_fleet(stage: _Stage) -> None:
    made = await in_parallel(stage.fleet.create(model(number)) for number in range(SERVINGS))
    await in_parallel(announce(stage.watcher, document) for document in made)


async def _create(stage: _Stage) -> _Rate:
    """From the first object created to the last."""
    with reconciler_process(stage.nats, stage.fake) as reconciler:
        first = await eventually(lambda: reconciler.metric("actions_total"), PATIENCE_SECONDS)
        began, cpu = time.monotonic(), cpu_seconds(reconciler.pid)
        await eventually(
            lambda: reconciler.metric("actions_total") >= CREATED, PATIENCE_SECONDS, "all created"
        )
        seconds, spent = time.monotonic() - began, cpu_seconds(reconciler.pid) - cpu
        return _Rate(CREATED - first, seconds, spent)


async def _start_pods(stage: _Stage) -> None:
    names = await stage.fleet.names("pods")
    assert len(names) == PODS, len(names)
    await in_parallel(stage.fleet.set_status(name, "Running", ready=True) for name in names)


async def _restart(stage: _Stage) -> list[Figure]:
    """A start over the whole fleet, and what follows on it."""
    began = time.monotonic()
    with reconciler_process(stage.nats, stage.fake) as reconciler:
        await eventually(lambda: reconciler.passes() >= SERVINGS, PATIENCE_SECONDS, "all looked at")
        await eventually(lambda: _is_steady(stage), PATIENCE_SECONDS, "every status written")
        seconds, spent = time.monotonic() - began, cpu_seconds(reconciler.pid)
        await eventually(reconciler.is_quiet, PATIENCE_SECONDS)
        start = _start(seconds, spent)
        resync = await _resync(stage, reconciler)
        changes = await _changes(stage)
        return [start, resync, changes, _memory(reconciler)]


async def _is_steady(stage: _Stage) -> bool:
    items = (await stage.calls.get(stage.fleet.servings())).items
    return all((one.get("status") or {}).get("availableReplicas") == GROUPS for one in items)


async def _resync(stage: _Stage, reconciler: ReconcilerProcess) -> Figure:
    """An order about something else makes it look at everything once."""
    before, cpu = reconciler.passes(), cpu_seconds(reconciler.pid)
    order = ControlThawed(who="bench", why="a look at everything")
    elsewhere = ObjectKey("ModelServing", "elsewhere", "none")
    await stage.people.publish(stage.people.event(order, elsewhere, id="look"))
    await eventually(lambda: reconciler.passes() >= before + SERVINGS, PATIENCE_SECONDS)
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


def _creation(created: _Rate, writes: _Rate) -> Figure:
    return Figure(
        name="kube-create",
        value=round(created.per_cpu_second / writes.per_cpu_second, 2),
        unit="of the fake's rate",
        limit=CREATE_LIMIT,
        more_is_better=True,
        meaning="pods and snapshots that the reconciler creates per second of its CPU, relative to "
        "the pods that the fake takes per second of its own",
        configuration=LOAD,
        detail={
            "created_per_second": round(created.per_second),
            "fake_writes_per_second": round(writes.per_second),
            "ratio_by_the_clock": round(created.per_second / writes.per_second, 2),
            "created_per_cpu_second": round(created.per_cpu_second),
            "fake_writes_per_cpu_second": round(writes.per_cpu_second),
        },
    )


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


def _memory(reconciler: ReconcilerProcess) -> Figure:
    return Figure(
        name="kube-memory",
        value=round(reconciler.memory_mb(), 1),
        unit="MB",
        limit=MEMORY_LIMIT_MB,
        meaning="proportional set size of the reconciler's process after all of this",
        configuration=LOAD,
    )
