"""The spec-watcher on Kubernetes, alone in a process: 1,000 ModelServings and 1,000 other objects.

The fake API server is another process, and the bus a real one that syncs every write.
"""

import asyncio
import time
from collections.abc import Iterator
from typing import Any

from inferbus_contracts.catalog import Stream
from inferbus_contracts.services import Service
from inferbus_shared.bus.bus import Bus
from inferbus_shared.bus.follow import Start
from inferbus_shared.bus.jetstream import api
from tests.bench.figure import Detail, Figure, quantile
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
from tests.support.kube_calls import KubeCalls
from tests.support.kube_watcher import create, definitions, install, place
from tests.support.nats import NatsServer, running_server

SERVINGS = 1000
OTHERS = 1000
OBJECTS = SERVINGS + OTHERS
EDITS = 100
LOOK_SECONDS = 0.1
PATIENCE_SECONDS = 90.0

LOAD: dict[str, Detail] = {"servings": SERVINGS, "others": OTHERS}

Document = dict[str, Any]


async def measure() -> list[Figure]:
    """All figures, on the same objects. Nothing is promised about them."""
    with running_server() as nats, fake_process() as fake:
        await nats.provision()
        async with (
            KubeCalls(fake.url, fake.token) as calls,
            nats.bus(Service.SPEC_WATCHER) as bus,
        ):
            await install(calls, *definitions())
            await in_parallel(create(calls, one, NAMESPACE) for one in _objects())
            start = await _start(nats, fake, bus)
            return [start, *await _restart(nats, fake, bus, calls)]


def _objects() -> Iterator[Document]:
    yield from (model(number) for number in range(SERVINGS))
    for number in range(OTHERS // 2):
        yield _other("ModelServer", number, workloadSelector={"matchLabels": {"app": "a"}})
        rules = [{"name": "all", "targetModels": [{"modelServerName": f"o{number:04}"}]}]
        yield _other("ModelRoute", number, modelName=f"o{number:04}", rules=rules)


def _other(kind: str, number: int, **spec: Any) -> Document:
    if kind == "ModelServer":
        spec |= {"inferenceEngine": "vLLM", "workloadPort": {"port": 8000}}
    return {
        "apiVersion": "networking.serving.volcano.sh/v1alpha1",
        "kind": kind,
        "metadata": {"name": f"o{number:04}"},
        "spec": spec,
    }


async def _start(nats: NatsServer, fake: FakeProcess, bus: Bus) -> Figure:
    """Over objects that nobody has told of."""
    began = time.monotonic()
    with service_process(nats, fake, Service.SPEC_WATCHER) as watcher:
        while await _facts(bus) < OBJECTS:
            assert time.monotonic() - began < PATIENCE_SECONDS, await _facts(bus)
            await asyncio.sleep(LOOK_SECONDS)
        seconds, spent = time.monotonic() - began, cpu_seconds(watcher.pid)
        await eventually(watcher.is_idle, PATIENCE_SECONDS, "every status written")
        return Figure(
            name="kube-announcing",
            value=round(seconds, 2),
            unit="s",
            meaning="from the start of the spec-watcher to a fact on the bus about every object",
            configuration=LOAD,
            detail={
                "cpu_seconds": round(spent, 2),
                "cpu_seconds_until_every_status_is_written": round(cpu_seconds(watcher.pid), 2),
                "memory_mb": round(watcher.memory_mb(), 1),
            },
        )


async def _facts(bus: Bus) -> int:
    """About how many objects of the namespace there is a fact."""
    about = {"subjects_filter": f"inferbus.v1.spec.changed.*.{NAMESPACE}.>"}
    info = await api(bus.connection, f"STREAM.INFO.{Stream.FACTS}", about)
    return len(info["state"].get("subjects") or {})


async def _restart(nats: NatsServer, fake: FakeProcess, bus: Bus, calls: KubeCalls) -> list[Figure]:
    """A start over objects about which everything is told, and edits on them."""
    with service_process(nats, fake, Service.SPEC_WATCHER) as watcher:
        await eventually(lambda: watcher.metric("kube_objects") >= OBJECTS, PATIENCE_SECONDS)
        await eventually(watcher.is_idle, PATIENCE_SECONDS)
        spent = cpu_seconds(watcher.pid)
        delays = await _edits(bus, calls)
        return [_rest(watcher, spent), _edit(delays)]


async def _edits(bus: Bus, calls: KubeCalls) -> list[float]:
    """From the API server's answer about an edit to the fact, in milliseconds."""
    delays = []
    follower = bus.follow("spec.changed", Start.new(), kind="ModelServing", namespace=NAMESPACE)
    messages = follower.messages()
    waiting = asyncio.ensure_future(anext(messages))
    await follower.caught_up()
    for number in range(EDITS):
        path = place("ModelServing", NAMESPACE, model(number)["metadata"]["name"])
        answer = await calls.merge(path, {"spec": {"replicas": 6}})
        assert answer.ok, answer
        began = time.monotonic()
        await waiting
        delays.append((time.monotonic() - began) * 1000)
        waiting = asyncio.ensure_future(anext(messages))
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    return delays


def _rest(watcher: ServiceProcess, spent: float) -> Figure:
    return Figure(
        name="kube-watcher-rest",
        value=round(spent, 2),
        unit="s of CPU",
        meaning="a start of the spec-watcher over objects about which everything is told and "
        "written, until it is idle",
        configuration=LOAD,
        detail={"memory_mb": round(watcher.memory_mb(), 1)},
    )


def _edit(delays: list[float]) -> Figure:
    return Figure(
        name="kube-edit",
        value=round(quantile(delays, 0.99), 1),
        unit="ms at p99",
        meaning="from the API server's answer about an edit to its fact on the bus, read by a "
        "follower",
        configuration=LOAD | {"edits": EDITS},
        detail={"p50_ms": round(quantile(delays, 0.5), 1)},
    )
