"""The table over a real bus: what happens to routers when the bus fails them."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace

import pytest
from nats.aio.msg import Msg

from inferbus_contracts.base import EventData
from inferbus_contracts.events.route import RouteAcknowledged
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.services import Service
from inferbus_router import adapters_bus
from inferbus_router.adapters_bus import BusTable, Sayings
from inferbus_router.adapters_static import published
from inferbus_shared.bus.bus import Bus
from inferbus_shared.bus.jetstream import api
from inferbus_shared.bus.pull import LongPoll
from services.router.tests.builders import Entries, endpoint, route, route_key, server, server_key
from services.router.tests.test_intake import Sink
from tests.support.eventually import eventually
from tests.support.nats import NatsServer, running_server

ENTRIES: Entries = {route_key("r"): route(), server_key("ms"): server(endpoint(1))}


@pytest.fixture
def nats_server() -> Iterator[NatsServer]:
    with running_server() as server_:
        yield server_


class Publisher:
    """Writes parts as the router-config-publisher does."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._number = 0
        self.revision = 0

    async def publish(self, entries: Entries, *keys: ObjectKey) -> None:
        """The parts of these keys, or all, of a table of these entries."""
        self.revision += 1
        for key, data in published(entries, self.revision):
            if not keys or key in keys:
                self._number += 1
                await self._bus.publish(self._bus.event(data, key, id=f"part-{self._number}"))

    async def publish_nonsense(self) -> None:
        """Something under the key of a part that no version understands."""
        part = published(ENTRIES)[0][1]
        message = self._bus.event(part, route_key("broken"), id="broken")
        await self._bus.publish(replace(message, body=b'{"revision": "?"}'))


@contextlib.asynccontextmanager
async def following(nats: NatsServer, name: str = "router-1") -> AsyncIterator[Sink]:
    """A router's side of the table."""
    sink = Sink()
    async with nats.bus(Service.ROUTER, name) as bus:
        sayings = Sayings(bus, name)
        tasks = [
            asyncio.create_task(sayings.run()),
            asyncio.create_task(BusTable(bus, sayings).run(sink)),
        ]
        try:
            yield sink
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


@contextlib.asynccontextmanager
async def a_router_with_the_table(nats: NatsServer) -> AsyncIterator[tuple[Publisher, Sink]]:
    """A publisher that has published `ENTRIES`, and a router that serves by them."""
    await nats.provision()
    async with nats.bus(Service.ROUTER_CONFIG_PUBLISHER) as bus:
        publisher = Publisher(bus)
        await publisher.publish(ENTRIES)
        async with following(nats) as sink:
            await eventually(lambda: sink.ready)
            yield publisher, sink


async def test_a_router_has_the_table_and_then_every_change(nats_server: NatsServer) -> None:
    async with a_router_with_the_table(nats_server) as (publisher, sink):
        assert sink.table.is_complete
        await publisher.publish(
            {**ENTRIES, server_key("ms"): server(endpoint(2))}, server_key("ms")
        )
        await eventually(lambda: sink.table.revision == 2)
        assert sink.table.is_complete


async def test_a_killed_bus_leaves_the_table_and_brings_what_was_missed(
    nats_server: NatsServer,
) -> None:
    async with a_router_with_the_table(nats_server) as (publisher, sink):
        for port in (2, 3):
            nats_server.kill()
            assert sink.table.is_complete
            nats_server.start()
            changed = {**ENTRIES, server_key("ms"): server(endpoint(port))}
            await publisher.publish(changed, server_key("ms"))
            await eventually(lambda: sink.table.revision == publisher.revision, 30)
            assert sink.table.is_complete


async def test_a_log_that_is_made_anew_replaces_the_table_when_it_is_whole(
    nats_server: NatsServer,
) -> None:
    """Its revisions begin anew too; until the new table is whole the old one serves."""
    await nats_server.provision()
    async with (
        nats_server.bus(Service.ROUTER_CONFIG_PUBLISHER) as bus,
        nats_server.connection() as admin,
    ):
        publisher = Publisher(bus)
        for _ in range(3):
            await publisher.publish(ENTRIES)
        async with following(nats_server) as sink:
            await eventually(lambda: sink.ready)
            await api(admin, "STREAM.DELETE.ROUTES")
            await nats_server.provision()
            publisher.revision = 0
            other: Entries = {route_key("r"): route(model="n"), server_key("ms"): server()}
            await publisher.publish(other, route_key("r"))
            publisher.revision = 0
            assert sink.table.revision == 3
            await publisher.publish(other, server_key("ms"))
            await eventually(lambda: sink.table.revision == 1, 30)
            assert sink.table.is_complete
            assert list(sink.table.indexes.names) == ["n"]
            assert sink.ready == 1


async def test_a_purged_log_leaves_the_table(nats_server: NatsServer) -> None:
    async with (
        a_router_with_the_table(nats_server) as (publisher, sink),
        nats_server.connection() as admin,
    ):
        await api(admin, "STREAM.PURGE.ROUTES")
        await publisher.publish({**ENTRIES, server_key("x"): server()}, server_key("x"))
        await eventually(lambda: sink.table.revision == 2)
        assert sink.table.is_complete
        assert len(sink.table.servers) == 2


async def test_acknowledgements_are_few_and_tell_what_is_served(
    nats_server: NatsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fifty changes in one slot are one acknowledgement, of the last of them."""
    monkeypatch.setattr(adapters_bus, "SLOT_MS", 60_000)
    await nats_server.provision()
    said: list[EventData] = []
    async with (
        nats_server.bus(Service.ROUTER_CONFIG_PUBLISHER) as bus,
        nats_server.bus(Service.ROUTER, "router-1") as own,
    ):
        publisher = Publisher(bus)
        sayings = Sayings(own, "router-1")
        sink, table = Sink(), BusTable(own, sayings)
        monkeypatch.setattr(sayings, "say", lambda data, key, cause: said.append(data))
        task = asyncio.create_task(table.run(sink))
        await eventually(lambda: sink.ready)
        await publisher.publish(ENTRIES)
        await eventually(lambda: sink.table.revision == 1)
        for port in range(50):
            changed = {**ENTRIES, server_key("ms"): server(endpoint(port + 10))}
            await publisher.publish(changed, server_key("ms"))
        await eventually(lambda: sink.table.revision == 51)
        assert said == []
        table.end_slot()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    (last,) = said
    assert isinstance(last, RouteAcknowledged)
    assert (last.revision, last.table_digest) == (51, sink.table.digest)
    assert last.lag_ms >= 0


async def test_a_part_that_can_not_be_read_hides_no_other(nats_server: NatsServer) -> None:
    async with a_router_with_the_table(nats_server) as (publisher, sink):
        await publisher.publish_nonsense()
        changed = {**ENTRIES, server_key("ms"): server(endpoint(2))}
        await publisher.publish(changed, server_key("ms"))
        await eventually(lambda: sink.table.revision == 2)
        assert sink.table.is_complete


async def test_a_message_that_is_lost_on_its_way_is_asked_for_again(
    nats_server: NatsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody acknowledges what an ordered consumer hands out: the next message shows the gap."""
    await nats_server.provision()
    lost: list[object] = []
    next_message = LongPoll.next

    async def losing(poll: LongPoll) -> Msg:
        message = await next_message(poll)
        if not lost and message.subject.endswith("ModelServer.ns.s3"):
            lost.append(message)
            return await next_message(poll)
        return message

    monkeypatch.setattr(LongPoll, "next", losing)
    entries: Entries = {**ENTRIES, **{server_key(f"s{number}"): server() for number in range(9)}}
    async with nats_server.bus(Service.ROUTER_CONFIG_PUBLISHER) as bus:
        publisher = Publisher(bus)
        await publisher.publish(entries)
        async with following(nats_server) as sink:
            await eventually(lambda: sink.ready)
            assert lost
            assert sink.table.is_complete
            assert sink.handed == 1
