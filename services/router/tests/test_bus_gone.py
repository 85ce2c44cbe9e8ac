"""A router whose bus goes away: it serves by the last table, and follows again afterwards."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator

import pytest

from inferbus_contracts.envelope import event_id
from inferbus_contracts.events.route import EndpointEntry, RoutePublished
from inferbus_contracts.services import Service
from inferbus_router.adapters_bus import QUEUE_LENGTH, BusTable, Sayings
from inferbus_router.adapters_static import published
from inferbus_router.settings import RouterSettings
from inferbus_router.wiring import RunningRouter, start_router
from inferbus_shared.bus.bus import Bus
from inferbus_shared.bus.connection import Connection
from inferbus_shared.clock import Anchor, SystemClock, real_now_ms
from services.router.tests.builders import Entries, route, route_key, server, server_key
from services.router.tests.client import Client, chat
from services.router.tests.conftest import StartEngine
from services.router.tests.engine import Engine
from tests.support.eventually import eventually
from tests.support.nats import NatsServer, running_server

MINUTES_MS = 60_000
BACK_SECONDS = 60.0


@pytest.fixture
def nats() -> Iterator[NatsServer]:
    """A server of the test's own, to be killed."""
    with running_server() as running:
        yield running


class Following:
    """A router that follows the bus."""

    def __init__(self, running: RunningRouter, sayings: Sayings, clock: SystemClock) -> None:
        self.running = running
        self.sayings = sayings
        self.clock = clock

    def ports(self) -> list[int]:
        """Of the endpoints of its table."""
        (state,) = self.running.router.state.table.servers.values()
        return [entry.port for entry in state.endpoints]


@contextlib.asynccontextmanager
async def following(nats: NatsServer, rate: float) -> AsyncIterator[Following]:
    """A router in this loop, put together as the program does it; `rate` of virtual time."""
    connection = Connection(Service.ROUTER, nats.settings("router-1"))
    await connection.open()
    clock = SystemClock(Anchor(real_ms=real_now_ms(), virtual_ms=real_now_ms(), rate=rate))
    sayings = Sayings(Bus(connection, clock), "router-1")
    settings = RouterSettings(
        port=0,
        http_port=0,
        access_log="off",
        drain_linger_seconds=0,
        grace_seconds=0,
        first_byte_timeout_seconds=1e6,
        stream_idle_timeout_seconds=1e6,
    )
    running = await start_router(settings, clock, "router-1", sayings)
    tasks = [
        asyncio.create_task(BusTable(Bus(connection, clock), sayings).run(running.router)),
        asyncio.create_task(sayings.run()),
    ]
    try:
        async with asyncio.timeout(BACK_SECONDS):
            await running.router.ready.wait()
        await running.accept()
        yield Following(running, sayings, clock)
    finally:
        for task in tasks:
            task.cancel()
        await running.stop()
        await connection.close()


async def publish(nats: NatsServer, revision: int, *endpoints: EndpointEntry) -> None:
    """A route to one model server with these endpoints, as the publisher tells it."""
    entries: Entries = {
        route_key("r"): route(),
        server_key("ms"): server(*endpoints, target="ModelServing/ns/ms"),
    }
    async with nats.bus(Service.ROUTER_CONFIG_PUBLISHER) as bus:
        for key, part in published(entries, revision):
            cause = event_id(RoutePublished.event_type, key, str(revision))
            await bus.publish(bus.event(part, key, id=cause))


async def serves_for(router: Following, lasts_ms: int) -> None:
    """Ask once, and again until so much virtual time has passed; every answer is a good one."""
    client = await Client.connect(router.running.listener.port)
    until_ms = router.clock.now_ms() + lasts_ms
    assert (await client.post(chat())).status == 200
    while router.clock.now_ms() < until_ms:
        assert (await client.post(chat())).status == 200
    client.close()


async def outage(nats: NatsServer, engine: Engine, rate: float, lasts_ms: int) -> None:
    """The bus is gone for that long; then there is another endpoint."""
    await nats.provision()
    await publish(nats, 1, engine.entry())
    async with following(nats, rate) as router:
        await eventually(lambda: router.ports() == [engine.port], BACK_SECONDS)
        nats.kill()
        await serves_for(router, lasts_ms)
        assert router.ports() == [engine.port]
        assert len(router.sayings._queue) <= QUEUE_LENGTH

        nats.start()
        await publish(nats, 2, engine.entry(), engine.entry(pod="second"))
        await eventually(lambda: len(router.ports()) == 2, BACK_SECONDS)
        await serves_for(router, 0)


async def test_the_last_table_serves_while_the_bus_is_gone_for_half_an_hour_of_fast_time(
    nats: NatsServer, start_engine: StartEngine
) -> None:
    await outage(nats, await start_engine(), rate=3_000.0, lasts_ms=30 * MINUTES_MS)


@pytest.mark.slow
async def test_the_last_table_serves_while_the_bus_is_gone_for_twenty_seconds(
    nats: NatsServer, start_engine: StartEngine
) -> None:
    await outage(nats, await start_engine(), rate=1.0, lasts_ms=20_000)
