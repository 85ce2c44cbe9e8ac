"""The publisher on a real bus: facts come from their writers, parts and conditions go out."""

import contextlib
import logging

import pytest
from publisher_builders import pod, route, route_key, server, server_key, to
from publisher_platform import Platform, platform, value

from inferbus_contracts.envelope import event_id
from inferbus_contracts.events.route import RouteAcknowledged, RoutePublished, ServerEntry
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.services import Service
from inferbus_router_config_publisher import publication
from inferbus_router_config_publisher.effects import RoutesLog
from inferbus_router_config_publisher.policy_parts import Part
from inferbus_shared.bus.jetstream import api
from inferbus_shared.bus.store import WrongSequenceError
from tests.support.eventually import eventually
from tests.support.nats import NatsServer

SOME_SERVER = Part.of(ServerEntry(engine="vLLM"))


async def settled(world: Platform) -> None:
    """A route, its server and one ready pod have arrived at the router."""
    await world.apply(route(), server())
    await world.observe(pod())
    await eventually(lambda: world.router.addresses(server_key()) == ["10.0.0.1"])


async def test_facts_become_parts_and_conditions(nats_server: NatsServer) -> None:
    async with platform(nats_server) as world, world.publisher():
        await settled(world)
        await eventually(lambda: world.router.is_complete)
        assert set(world.router.held) == {route_key(), server_key()}
        expected = {"Accepted": "Accepted", "ResolvedRefs": "ResolvedRefs"}
        await eventually(
            lambda: world.conditions(server_key()) == expected | {"Ready": "EndpointsReady"}
        )
        await eventually(
            lambda: (
                world.conditions(route_key())
                == expected | {"Ready": "EndpointsReady", "Conflicted": "NoConflicts"}
            )
        )


async def test_a_pod_that_goes_and_comes_back_is_followed(nats_server: NatsServer) -> None:
    """The same part twice inside the duplicate window is two messages."""
    async with platform(nats_server) as world, world.publisher():
        await settled(world)
        for _ in range(2):
            await world.observe(pod(ready=False))
            await eventually(lambda: world.router.addresses(server_key()) == [])
            await world.observe(pod())
            await eventually(lambda: world.router.addresses(server_key()) == ["10.0.0.1"])
        assert world.router.is_complete
        revisions = [message.revision for _, message in world.router.messages]
        assert revisions == list(range(1, len(revisions) + 1))


async def test_restarts_on_a_quiet_system_add_nothing(nats_server: NatsServer) -> None:
    async with platform(nats_server) as world:
        async with world.publisher():
            await settled(world)
            await world.fence()
        parts, resolved = len(world.router.messages), len(world.resolved)
        fences = [server_key(f"fence-{number}") for number in range(10)]
        for fence in fences:
            async with world.publisher(fence.name):
                await world.fence(fence.name)
        assert [key for key, _ in world.router.messages[parts:]] == fences
        assert [key for key, _ in world.resolved[resolved:]] == fences


async def test_what_happened_while_nobody_ran_is_published_at_start(
    nats_server: NatsServer,
) -> None:
    async with platform(nats_server) as world:
        async with world.publisher():
            await world.apply(route("gone"), server("gone"))
            await settled(world)
            await world.fence()
        await world.apply(route("gone"), server("gone"), deleted=True)
        await world.observe(pod(address="10.0.0.2"))
        async with world.publisher():
            await world.fence("later")
            assert world.router.addresses(server_key()) == ["10.0.0.2"]
            left = {route_key(), server_key(), server_key("fence"), server_key("later")}
            assert set(world.router.held) == left


async def test_a_deletion_is_published_once(nats_server: NatsServer) -> None:
    async with platform(nats_server) as world:
        async with world.publisher():
            await settled(world)
            await world.apply(route(), deleted=True)
            await eventually(lambda: set(world.router.held) == {server_key()})
            await world.apply(server(), deleted=True)
            await eventually(lambda: world.router.held == {})
            assert world.router.is_complete
        async with world.publisher("later"):
            await world.fence()
        tombstones = [key for key, message in world.router.messages if message.deleted]
        assert tombstones == [route_key(), server_key()]


async def test_a_part_nobody_has_a_fact_about_stays(nats_server: NatsServer) -> None:
    """Lost facts freeze what routers have, and never empty their tables (DESIGN 1)."""
    async with platform(nats_server) as world:
        async with nats_server.bus(Service.ROUTER_CONFIG_PUBLISHER, "earlier") as bus:
            log = RoutesLog(bus)
            table = await log.load()
            await log.store(table.batch(table.changes({server_key("kept"): SOME_SERVER})), {})
        async with world.publisher():
            await settled(world)
            await world.fence()
        assert server_key("kept") in world.router.held


async def test_a_bad_route_affects_only_itself(nats_server: NatsServer) -> None:
    async with platform(nats_server) as world, world.publisher():
        bad = route("bad", to("s", match={"uri": {"regex": "["}}), to("a/b"))
        await world.apply(bad)
        await settled(world)
        await eventually(lambda: world.conditions(route_key("bad")) != {})
        assert world.conditions(route_key("bad"))["Accepted"] == "NoActiveRule"
        await eventually(lambda: world.conditions(route_key()).get("Ready") == "EndpointsReady")


async def test_of_two_writers_the_second_stores_nothing_until_it_has_read_again(
    nats_server: NatsServer,
) -> None:
    async with contextlib.AsyncExitStack() as stack:
        logs = [
            RoutesLog(
                await stack.enter_async_context(
                    nats_server.bus(Service.ROUTER_CONFIG_PUBLISHER, instance)
                )
            )
            for instance in ("a", "b")
        ]
        tables = [await log.load() for log in logs]
        wanted = [
            {server_key(f"{name}{number}"): SOME_SERVER for number in range(3)}
            for name in ("a", "b")
        ]
        batches = [
            table.batch(table.changes(own)) for table, own in zip(tables, wanted, strict=True)
        ]
        await logs[0].store(batches[0], {})
        with pytest.raises(WrongSequenceError):
            await logs[1].store(batches[1], {})
        again = await logs[1].load()
        assert (again.parts, again.revision) == (3, 3)
        batch = again.batch(again.changes(wanted[1]))
        await logs[1].store(batch, {})
        read_back = await logs[0].load()
        assert (read_back.parts, read_back.revision) == (6, 6)
        assert read_back.table_digest == batch.table.table_digest


async def test_a_publisher_that_another_was_faster_than_reads_again_and_goes_on(
    nats_server: NatsServer,
) -> None:
    async with platform(nats_server) as world, world.publisher() as registry:
        await settled(world)
        await world.fence()
        async with nats_server.bus(Service.ROUTER_CONFIG_PUBLISHER, "other") as bus:
            log = RoutesLog(bus)
            table = await log.load()
            await log.store(table.batch(table.changes({server_key("x"): SOME_SERVER})), {})
        await world.apply(server("t"))
        await eventually(lambda: server_key("t") in world.router.held)
        assert value(registry, "batches_total", outcome="lost") == 1
        assert world.router.is_complete
        assert server_key("x") in world.router.held


async def test_two_instances_that_both_publish_leave_one_whole_table(
    nats_server: NatsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "inferbus_shared.bus.membership.Membership.is_active", property(lambda self: True)
    )
    async with platform(nats_server) as world, world.publisher("a"), world.publisher("b"):
        for number in range(30):
            await world.apply(route(f"r{number}", to(f"s{number}")), server(f"s{number}"))
        await world.observe(*(pod(f"p{n}", {"app": f"s{n}"}) for n in range(30)))
        await eventually(
            lambda: all(world.router.addresses(server_key(f"s{n}")) for n in range(30))
        )
        await world.fence()
        revisions = [message.revision for _, message in world.router.messages]
        assert revisions == list(range(1, len(revisions) + 1))


async def test_only_the_oldest_instance_works_and_the_other_takes_over(
    nats_server: NatsServer,
) -> None:
    async with platform(nats_server) as world, contextlib.AsyncExitStack() as later:
        async with world.publisher():
            await settled(world)
        async with world.publisher("first", coalesce_ms=60_000.0) as active:
            await eventually(lambda: value(active, "parts") == 2)
            await world.apply(server("t"))
            await eventually(lambda: world.conditions(server_key("t")))
            standby = await later.enter_async_context(world.publisher("second"))
            await acknowledge(nats_server, world.router.messages[-1][1])
            await eventually(lambda: value(standby, "routers") == 1)
            await world.observe(pod(ready=False))
            await eventually(lambda: server_key("t") in world.router.held)
            assert value(active, "published_parts_total") == 2
        await world.apply(server("u"))
        await eventually(lambda: server_key("u") in world.router.held)
        assert value(standby, "published_parts_total") == 1
        assert value(standby, "batches_total", outcome="lost") == 0


async def test_a_killed_bus_is_survived(nats_server: NatsServer) -> None:
    async with platform(nats_server) as world, world.publisher():
        await settled(world)
        nats_server.kill()
        nats_server.start()
        await world.observe(pod(address="10.0.0.3"))
        await eventually(lambda: world.router.addresses(server_key()) == ["10.0.0.3"])
        assert world.router.is_complete


@pytest.mark.parametrize("call", ["PURGE", "DELETE"])
async def test_a_log_that_lost_its_parts_gets_them_again_without_a_change(
    nats_server: NatsServer, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    monkeypatch.setattr(publication, "CHECK_SECONDS", 0.1)
    async with platform(nats_server) as world, world.publisher(), nats_server.connection() as admin:
        await settled(world)
        world.router.messages.clear()
        await api(admin, f"STREAM.{call}.ROUTES")
        await nats_server.provision()
        await eventually(lambda: world.router.addresses(server_key()) == ["10.0.0.1"], 30)
        await eventually(lambda: world.router.is_complete)
        assert set(world.router.held) == {route_key(), server_key()}


async def test_changes_wait_for_company_and_a_lost_endpoint_takes_them_along(
    nats_server: NatsServer,
) -> None:
    async with platform(nats_server) as world:
        async with world.publisher():
            await settled(world)
        async with world.publisher("patient", coalesce_ms=60_000.0) as registry:
            await eventually(lambda: value(registry, "parts") == 2)
            names = [f"s{number}" for number in range(20)]
            await world.apply(*(server(name) for name in names))
            await eventually(lambda: all(world.conditions(server_key(name)) for name in names))
            assert server_key("s0") not in world.router.held
            await world.observe(pod(ready=False))
            await eventually(lambda: world.router.addresses(server_key()) == [])
            await eventually(lambda: all(server_key(name) in world.router.held for name in names))
            assert value(registry, "batches_total", outcome="stored") == 1


ROUTER = ObjectKey("Router", "_", "r-1")


async def acknowledge(server: NatsServer, message: RoutePublished) -> None:
    async with server.bus(Service.ROUTER) as bus:
        data = RouteAcknowledged(
            revision=message.revision, table_digest=message.table_digest, lag_ms=7
        )
        id_ = event_id(data.event_type, ROUTER, str(message.revision))
        await bus.publish(bus.event(data, ROUTER, id=id_))


async def test_acknowledgements_are_counted_and_a_silent_router_is_told(
    nats_server: NatsServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="inferbus")
    async with platform(nats_server) as world, world.publisher(lagging_seconds=0.3) as registry:
        await settled(world)
        await world.fence()
        served = world.router.messages[-1][1]
        await acknowledge(nats_server, served)
        await eventually(lambda: value(registry, "routers") == 1)
        assert value(registry, "oldest_served_revision") == served.revision
        assert value(registry, "router_lag_seconds_sum") == pytest.approx(0.007)
        await world.observe(pod(address="10.0.0.4"))
        await eventually(lambda: value(registry, "routers_behind") == 1)
        assert "a router stays behind" in caplog.text
        await eventually(lambda: world.router.addresses(server_key()) == ["10.0.0.4"])
        await acknowledge(nats_server, world.router.messages[-1][1])
        await eventually(lambda: value(registry, "routers_behind") == 0)
        assert "a router has caught up" in caplog.text
