"""Many routers in one process, each with its own connection, follower, table and fleet.

`python -m tests.bench.router_followers FIRST COUNT` with a service's environment. It says on
standard output when all of its routers serve a revision, and what it all cost: lines of JSON. The
routers are whole ones without clients: what is measured is their real way from the bus to the
table.
"""

import asyncio
import json
import sys
import time
from collections.abc import Sequence

import uvloop

from inferbus_contracts.services import Service
from inferbus_router.adapters_bus import BusTable, Sayings
from inferbus_router.main import spare_the_table
from inferbus_router.ports import Parts
from inferbus_router.router import Router
from inferbus_router.settings import RouterSettings
from inferbus_router.wiring import start_router
from inferbus_shared.bus.bus import Bus
from inferbus_shared.bus.connection import Connection
from inferbus_shared.bus.provision import read_anchor
from inferbus_shared.clock import SystemClock
from inferbus_shared.settings import BusSettings, load_settings


class Watched:
    """A `TableSink`: a router, and a look at what it serves by after every change."""

    def __init__(self, router: Router, watch: "Watch") -> None:
        self._router = router
        self._watch = watch

    def apply(self, parts: Parts) -> None:
        self._router.apply(parts)
        self._watch.served(self, self._router.state.table.revision)

    def replace(self, parts: Parts) -> None:
        self._router.replace(parts)
        self._watch.served(self, self._router.state.table.revision)

    @property
    def table_digest(self) -> str:
        return self._router.table_digest

    def snapshot_ended(self) -> None:
        self._router.snapshot_ended()
        self._watch.ready()


class Watch:
    """When which revision was served by how many of the routers."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._ready = 0
        self._served: dict[Watched, tuple[int, float]] = {}

    def ready(self) -> None:
        """One more router serves."""
        self._ready += 1
        if self._ready == self._count:
            _say(ready=True)

    def served(self, router: Watched, revision: int) -> None:
        """A router serves by a revision from now on."""
        self._served[router] = (revision, time.monotonic() * 1000)
        if self._ready < self._count:
            return
        if min(served for served, _ in self._served.values()) == revision:
            _say(revision=revision, times_ms=[at_ms for _, at_ms in self._served.values()])


def _say(**what: object) -> None:
    print(json.dumps(what), flush=True)


async def follow(first: int, count: int) -> None:
    """Run the routers until the process is killed; one starts after the other, as in a rollout."""
    settings = load_settings(BusSettings)
    watch = Watch(count)
    tasks: list[asyncio.Task[None]] = []
    for number in range(first, first + count):
        tasks += await _start(settings, f"router-{number}", watch)
        spare_the_table()
    await asyncio.gather(*tasks)


async def _start(settings: BusSettings, name: str, watch: Watch) -> list[asyncio.Task[None]]:
    """A router that has the table; returns what runs it."""
    own = settings.model_copy(update={"instance": name})
    connection = Connection(Service.ROUTER, own)
    await connection.open()
    clock = SystemClock(await read_anchor(connection))
    bus = Bus(connection, clock)
    sayings = Sayings(bus, name)
    running = await start_router(
        RouterSettings(port=0, http_port=0, access_log="off"), clock, name, sayings
    )
    table = BusTable(bus, sayings).run(Watched(running.router, watch))
    tasks = [asyncio.create_task(sayings.run()), asyncio.create_task(table)]
    await running.router.ready.wait()
    return tasks


def main(argv: Sequence[str]) -> None:
    """`FIRST COUNT`."""
    uvloop.run(follow(int(argv[0]), int(argv[1])))


if __name__ == "__main__":
    main(sys.argv[1:])
