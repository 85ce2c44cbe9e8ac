"""One change among 2,000 routes and 10,000 endpoints, until the last of 100 routers serves by it.

A real NATS server, the publisher as a process of its own, and the routers in a few more. One change
at a time: an endpoint goes, one comes back, a route's weight moves. Measured from before the event
is handed to the bus. Then the same with the NATS server killed right behind the event, and started
again.
"""

import asyncio
import contextlib
import json
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

from inferbus_contracts.events.spec import SpecChanged
from inferbus_contracts.services import Service
from inferbus_shared.bus.bus import Bus
from inferbus_shared.bus.jetstream import api
from tests.bench.figure import Detail, Figure, quantile
from tests.bench.processes import cpu_seconds
from tests.bench.route_world import PARTS, PODS_PER_SERVER, ROUTES, Fact, all_facts, change
from tests.support.eventually import eventually
from tests.support.nats import NatsServer, running_server

LIMIT_MS = 100.0
KILLED_LIMIT_SECONDS = 3.0
ROUTERS = 100
PROCESSES = 4
CHANGES = 150
KILLS = 5
AT_ONCE = 100
"""Facts of the first table that are stored at the same time."""
TABLE_SECONDS = 500.0
CHANGE_SECONDS = 60.0
SETTLE_SECONDS = 10.0
"""For the conditions of the first table, which are written behind it."""


class Followers:
    """The processes with the routers, as far as they tell."""

    def __init__(self, processes: list[asyncio.subprocess.Process]) -> None:
        self._processes = processes

    async def ready(self) -> None:
        """Wait until every router has the table, the whole of it."""
        await asyncio.gather(*(self._line(process) for process in self._processes))

    async def serve_next(self) -> list[float]:
        """When each router served by the next revision: milliseconds of the monotonic clock."""
        lines = await asyncio.gather(*(self._line(process) for process in self._processes))
        return [time_ms for line in lines for time_ms in line["times_ms"]]

    def cpu_seconds(self) -> float:
        """What they have taken so far."""
        return sum(cpu_seconds(process.pid) for process in self._processes)

    async def _line(self, process: asyncio.subprocess.Process) -> dict[str, Any]:
        assert process.stdout is not None
        line = await process.stdout.readline()
        if not line:
            raise RuntimeError("a process with routers has ended")
        found: dict[str, Any] = json.loads(line)
        return found


async def measure() -> list[Figure]:
    """The figures of one table."""
    with running_server() as nats:
        await nats.provision()
        async with (
            nats.bus(Service.SPEC_WATCHER) as specs,
            nats.bus(Service.WORKLOAD_RECONCILER) as pods,
        ):
            writers = _Writers(specs, pods)
            await writers.store_all()
            with publisher(nats) as publisher_pid:
                await eventually(lambda: _is_published(nats), timeout=TABLE_SECONDS)
                async with followers(nats) as routers:
                    await asyncio.sleep(SETTLE_SECONDS)
                    pids = {"publisher": publisher_pid, "nats": nats.pid}
                    calm = await _calm_changes(writers, routers, pids)
                    return [calm, await _killed_changes(nats, writers, routers)]


class _Writers:
    """Whoever writes the facts."""

    def __init__(self, specs: Bus, pods: Bus) -> None:
        self._specs = specs
        self._pods = pods
        self._number = 0

    async def store_all(self) -> None:
        room = asyncio.Semaphore(AT_ONCE)

        async def one(fact: Fact) -> None:
            async with room:
                await self.store(fact)

        await asyncio.gather(*(one(fact) for fact in all_facts()))

    async def store(self, fact: Fact) -> None:
        key, data = fact
        bus = self._specs if isinstance(data, SpecChanged) else self._pods
        self._number += 1
        await bus.publish(bus.event(data, key, id=f"fact-{self._number}"))


async def _calm_changes(writers: _Writers, routers: Followers, pids: dict[str, int]) -> Figure:
    each: list[float] = []
    last: list[float] = []
    before = {name: cpu_seconds(pid) for name, pid in pids.items()}
    routers_before = routers.cpu_seconds()
    for number in range(CHANGES):
        began = time.monotonic() * 1000
        await writers.store(change(number))
        async with asyncio.timeout(CHANGE_SECONDS):
            times = await routers.serve_next()
        each += [at - began for at in times]
        last.append(max(times) - began)
    spent = {
        f"{name}_cpu_ms_per_change": round(1000 * (cpu_seconds(pid) - before[name]) / CHANGES, 2)
        for name, pid in pids.items()
    }
    router_ms = 1000 * (routers.cpu_seconds() - routers_before) / CHANGES / ROUTERS
    return Figure(
        name="route-change",
        value=round(quantile(each, 0.99), 1),
        unit="ms at p99",
        limit=LIMIT_MS,
        meaning="from before the event of a change is handed to the bus to each router serving by "
        "it",
        configuration=_configuration(),
        detail={
            "changes": CHANGES,
            "p50_ms": round(quantile(each, 0.5), 1),
            "most_ms": round(max(each), 1),
            "last_router_p50_ms": round(quantile(last, 0.5), 1),
            "last_router_p99_ms": round(quantile(last, 0.99), 1),
            "one_router_cpu_ms_per_change": round(router_ms, 3),
            **spent,
        },
    )


async def _killed_changes(nats: NatsServer, writers: _Writers, routers: Followers) -> Figure:
    took: list[float] = []
    for number in range(KILLS):
        began = time.monotonic() * 1000
        await writers.store(change(CHANGES + number))
        nats.kill()
        await asyncio.to_thread(nats.start)
        async with asyncio.timeout(CHANGE_SECONDS):
            took.append(max(await routers.serve_next()) - began)
    return Figure(
        name="route-change-killed",
        value=round(max(took) / 1000, 2),
        unit="s at most",
        limit=KILLED_LIMIT_SECONDS,
        meaning="the same to the last router, with the NATS server killed right behind the event "
        "and started again at once",
        configuration=_configuration(),
        detail={"kills": KILLS, "p50_seconds": round(quantile(took, 0.5) / 1000, 2)},
    )


def _configuration() -> dict[str, Detail]:
    return {
        "routes": ROUTES,
        "endpoints": ROUTES * PODS_PER_SERVER,
        "routers": ROUTERS,
        "router_processes": PROCESSES,
    }


async def _is_published(nats: NatsServer) -> bool:
    async with nats.connection() as admin:
        info = await api(admin, "STREAM.INFO.ROUTES")
    return int(info["state"]["messages"]) >= PARTS


@contextlib.contextmanager
def publisher(nats: NatsServer) -> Iterator[int]:
    """The publisher as a process; gives its pid."""
    program = Path(sys.executable).parent / "inferbus-router-config-publisher"
    environment = nats.environment() | {"INFERBUS_ROUTER_CONFIG_PUBLISHER_HTTP_PORT": "0"}
    with subprocess.Popen([program], env=environment, stderr=subprocess.DEVNULL) as process:
        try:
            yield process.pid
        finally:
            process.kill()


@contextlib.asynccontextmanager
async def followers(nats: NatsServer) -> AsyncIterator[Followers]:
    """All routers, with the table; gone afterwards."""
    share = ROUTERS // PROCESSES
    processes: list[asyncio.subprocess.Process] = []
    try:
        for number in range(PROCESSES):
            processes.append(
                await asyncio.create_subprocess_exec(
                    *(sys.executable, "-m", "tests.bench.router_followers"),
                    *(str(number * share), str(share)),
                    env=nats.environment(),
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    limit=1 << 20,
                )
            )
        routers = Followers(processes)
        async with asyncio.timeout(TABLE_SECONDS):
            await routers.ready()
        yield routers
    finally:
        for process in processes:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
