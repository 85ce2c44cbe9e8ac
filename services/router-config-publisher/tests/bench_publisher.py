"""What the table costs: run with `PYTHONPATH=. python …/router-config-publisher/tests/<this file>`.

2,000 routes, 2,000 servers and 10,000 endpoints. First the pure join: CPU of folding everything, of
all parts and conditions, and of one changed pod; beside it the cost of joining everything anew, as
a publisher without indexes would. Then the service as a process of its own on a real NATS server:
from its start with an empty log to the whole table, and from the fact about one pod to the part in
the hands of the last of 100 followers, which all live in this process; real time of this machine
with everything that runs on it. Medians with their spread: the join five runs, one pod 200 changes.
`--json` gives the same for machines.
"""

import asyncio
import contextlib
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from publisher_builders import Document, fact, pod, route, server, to, workload, workload_key

from inferbus_contracts.base import EventData
from inferbus_contracts.events.spec import SpecChanged
from inferbus_contracts.events.workload import WorkloadObserved
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.services import Service
from inferbus_router_config_publisher.core import Affected, Join
from inferbus_router_config_publisher.policy_parts import PublishedTable
from inferbus_shared.bus.bus import Bus
from inferbus_shared.bus.jetstream import api
from tests.support.eventually import eventually
from tests.support.nats import NatsServer, running_server

ROUTES = 2_000
PODS_PER_SERVER = 5
RUNS = 5
CHANGES = 200
FOLLOWERS = 100
SETTLE_SECONDS = 5.0
"""For the conditions of the first table, which are written behind it."""

Facts = list[tuple[ObjectKey, EventData]]


def documents() -> Iterable[Document]:
    for number in range(ROUTES):
        yield route(f"r{number}", to(f"s{number}"), model=f"m{number}")
        yield server(f"s{number}", {"app": f"s{number}", "entry": "true"})


def observed(number: int, *, ready: bool = True) -> WorkloadObserved:
    labels = {"app": f"s{number}", "entry": "true", "revision": "r1", "role": "main"}
    return workload(
        *(
            pod(
                f"w{number}-{index}",
                labels,
                address=f"10.{number // 250}.{number % 250}.{index}",
                ready=ready or index > 0,
            )
            for index in range(PODS_PER_SERVER)
        )
    )


def everything() -> Facts:
    facts: Facts = [fact(doc) for doc in documents()]
    return facts + [(workload_key(f"w{number}"), observed(number)) for number in range(ROUTES)]


def fold(join: Join, key: ObjectKey, data: EventData) -> Affected:
    if isinstance(data, SpecChanged):
        return join.fold_object(key, data)
    assert isinstance(data, WorkloadObserved)
    return join.fold_workload(key, data)


def folded(facts: Facts) -> Join:
    join = Join()
    for key, data in facts:
        fold(join, key, data)
    return join


def cpu_ms(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return (time.process_time() - started) * 1000


def measure_join() -> dict[str, list[float]]:
    facts = everything()
    found: dict[str, list[float]] = {}
    for _ in range(RUNS):
        for name, figure in measure_once(facts).items():
            found.setdefault(name, []).append(figure)
    return found


def measure_once(facts: Facts) -> dict[str, float]:
    join = folded(facts)
    keys = join.keys()
    published = PublishedTable.read([], 0)
    table = published.batch(published.changes({key: join.part(key) for key in keys})).table
    changed = [observed(number, ready=False) for number in range(CHANGES)]

    def change() -> None:
        for number, data in enumerate(changed):
            affected = fold(join, workload_key(f"w{number}"), data)
            table.batch(table.changes({key: join.part(key) for key in affected.parts}))

    fold_ms = cpu_ms(lambda: folded(facts))
    parts_ms = cpu_ms(lambda: [join.part(key) for key in keys])
    return {
        "fold everything": fold_ms,
        "all parts with digests": parts_ms,
        "all conditions": cpu_ms(lambda: [join.resolved(key) for key in keys]),
        "one pod changed, to its batch": cpu_ms(change) / CHANGES,
        "one pod changed, all joined anew": fold_ms + parts_ms,
    }


class Followers:
    """Routers, as far as the bus is concerned: each follows every part on its own."""

    def __init__(self, bus: Bus) -> None:
        self._followers = [bus.follow("route.published") for _ in range(FOLLOWERS)]
        self._tasks = [asyncio.create_task(self._listen(number)) for number in range(FOLLOWERS)]
        self._waiting: set[int] = set()
        self._all = asyncio.Event()

    async def ready(self) -> None:
        """Wait until every follower has the table."""
        for follower in self._followers:
            await follower.caught_up()

    async def _listen(self, number: int) -> None:
        async for _ in self._followers[number].messages():
            self._waiting.discard(number)
            if not self._waiting:
                self._all.set()

    async def next_part(self, work: Awaitable[object]) -> float:
        """Milliseconds of real time from the beginning of `work` to the last follower's part."""
        self._waiting = set(range(FOLLOWERS))
        self._all.clear()
        started = time.perf_counter()
        await work
        await self._all.wait()
        return (time.perf_counter() - started) * 1000

    def stop(self) -> None:
        for task in self._tasks:
            task.cancel()


@contextlib.contextmanager
def publisher(nats: NatsServer) -> Iterator[None]:
    program = Path(sys.executable).parent / "inferbus-router-config-publisher"
    with subprocess.Popen([program], env=nats.environment(), stderr=subprocess.DEVNULL) as process:
        try:
            yield
        finally:
            process.terminate()


async def measure_service() -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    with running_server() as nats:
        await nats.provision()
        async with (
            nats.bus(Service.SPEC_WATCHER) as specs,
            nats.bus(Service.WORKLOAD_RECONCILER) as pods,
            nats.bus(Service.ROUTER) as routers,
        ):
            for number, (key, data) in enumerate(everything()):
                bus = specs if isinstance(data, SpecChanged) else pods
                await bus.publish(bus.event(data, key, id=f"fact-{number}"))
            started = time.perf_counter()
            with publisher(nats):
                await eventually(lambda: is_published(routers), timeout=120)
                elapsed_ms = (time.perf_counter() - started) * 1000
                found["process start to whole table"] = [elapsed_ms]
                followers = Followers(routers)
                await followers.ready()
                await asyncio.sleep(SETTLE_SECONDS)
                for ready, name in ((False, "endpoint lost"), (True, "endpoint gained")):
                    found[f"fact to {FOLLOWERS} followers, {name}"] = [
                        await followers.next_part(observe(pods, number, ready))
                        for number in range(CHANGES)
                    ]
            followers.stop()
    return found


async def is_published(bus: Bus) -> bool:
    info = await api(bus.connection, "STREAM.INFO.ROUTES")
    return int(info["state"]["last_seq"]) >= 2 * ROUTES


async def observe(bus: Bus, number: int, ready: bool) -> None:
    key = workload_key(f"w{number}")
    data = observed(number, ready=ready)
    await bus.publish(bus.event(data, key, id=f"change-{number}-{ready}"))


def summary(found: dict[str, list[float]]) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "median_ms": round(statistics.median(figures), 2),
            "min_ms": round(min(figures), 2),
            "p99_ms": round(sorted(figures)[int(len(figures) * 0.99)], 2)
            if len(figures) >= CHANGES
            else None,
            "max_ms": round(max(figures), 2),
        }
        for name, figures in found.items()
    ]


def main() -> None:
    rows = summary(measure_join()) + summary(asyncio.run(measure_service()))
    if "--json" in sys.argv:
        sys.stdout.write(json.dumps(rows) + "\n")
        return
    for row in rows:
        tail = f", p99 {row['p99_ms']}" if row["p99_ms"] is not None else ""
        spread = f"{row['min_ms']} to {row['max_ms']}{tail}"
        sys.stdout.write(f"{row['name']:<40} {row['median_ms']:>10} ms  ({spread})\n")


if __name__ == "__main__":
    main()
