"""Writing and following events against a real server, through restarts of both sides."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from inferbus_contracts.base import EventData
from inferbus_contracts.errors import ErrorCode, ProblemsError
from inferbus_contracts.events.spec import SpecChanged
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.services import Service
from inferbus_shared.bus.bus import Bus
from inferbus_shared.bus.follow import Follower, Start
from inferbus_shared.bus.jetstream import api
from inferbus_shared.bus.messages import Outgoing, Received
from inferbus_shared.bus.observer import Observer
from inferbus_shared.bus.store import Stored
from tests.support.eventually import eventually
from tests.support.nats import NatsServer

KEY = ObjectKey("ModelServing", "default", "sample.dotted")


def changed(name: str, generation: int = 1) -> SpecChanged:
    return SpecChanged(uid="u", generation=generation, digest="d", object={"name": name})


@contextlib.asynccontextmanager
async def collecting(bus: Bus, follower: Follower) -> AsyncIterator[list[Received[EventData]]]:
    seen: list[Received[EventData]] = []

    async def fold() -> None:
        async for event in bus.events(follower):
            seen.append(event)

    task = asyncio.create_task(fold())
    try:
        yield seen
    finally:
        task.cancel()


async def messages(server: NatsServer, stream: str) -> int:
    async with server.connection() as connection:
        info = await api(connection, f"STREAM.INFO.{stream}")
        return int(info["state"]["messages"])


def generations(events: list[Received[EventData]]) -> list[int]:
    return [event.data.generation for event in events if isinstance(event.data, SpecChanged)]


async def test_provisioning_twice_changes_nothing(nats_server: NatsServer) -> None:
    report = await nats_server.provision()
    assert not report.created
    assert not report.updated


async def test_drift_is_put_right(nats_server: NatsServer) -> None:
    async with nats_server.connection() as connection:
        config = (await api(connection, "STREAM.INFO.FACTS"))["config"]
        await api(connection, "STREAM.UPDATE.FACTS", config | {"max_age": 3600 * 10**9})
        durable = "INBOX_AUTOSCALER.autoscaler-p0"
        known = (await api(connection, f"CONSUMER.INFO.{durable}"))["config"]
        await api(
            connection,
            f"CONSUMER.CREATE.{durable}.{known['filter_subject']}",
            {"stream_name": "INBOX_AUTOSCALER", "config": known | {"max_ack_pending": 7}},
        )
    report = await nats_server.provision()
    assert sorted(report.updated) == ["FACTS", "autoscaler-p0"]
    assert not (await nats_server.provision()).updated


async def test_everything_is_still_there_after_a_server_kill(nats_server: NatsServer) -> None:
    nats_server.kill()
    nats_server.start()
    report = await nats_server.provision()
    assert not report.created
    assert not report.updated


async def test_a_follower_gets_the_last_of_each_key_and_new_ones_across_a_server_kill(
    nats_server: NatsServer,
) -> None:
    async with (
        nats_server.bus(Service.SPEC_WATCHER) as writer,
        nats_server.bus(Service.ROUTER) as reader,
    ):
        for generation in (1, 2, 3):
            await writer.publish(writer.event(changed("a", generation), KEY, id=f"{generation}"))
        await eventually(lambda: last_is(reader, 3))
        follower = reader.follow("spec.changed")
        async with collecting(reader, follower) as seen:
            await follower.caught_up()
            assert generations(seen) == [3]
            await writer.publish(writer.event(changed("a", 4), KEY, id="4"))
            await eventually(lambda: generations(seen) == [3, 4])
            nats_server.kill()
            nats_server.start()
            for generation in (5, 6):
                message = writer.event(changed("a", generation), KEY, id=f"{generation}")
                await writer.publish(message)
            await eventually(lambda: generations(seen)[-1] == 6)
            assert generations(seen) in ([3, 4, 5, 6], [3, 4, 6]), (
                "a last value may skip, not repeat"
            )
            assert seen[0].key == KEY


async def last_is(bus: Bus, generation: int) -> bool:
    follower = bus.follow("spec.changed")
    async with collecting(bus, follower) as seen:
        await follower.caught_up()
        return generations(seen) == [generation]


async def test_an_observer_writes_changes_only_and_remembers_across_restarts(
    nats_server: NatsServer,
) -> None:
    async with nats_server.bus(Service.SPEC_WATCHER) as bus:
        for name, stored in (("a", 1), ("a", 1), ("b", 2), ("a", 3), ("a", 3)):
            observer = Observer(bus, "spec.changed")
            running = asyncio.create_task(observer.run())
            await observer.observe(KEY, "u", changed(name))
            running.cancel()
            assert await messages(nats_server, "FACTS") == stored


class LateBus(Bus):
    """Learns that an event is stored only once `answer` is set."""

    def __init__(self, bus: Bus) -> None:
        super().__init__(bus.connection, bus.clock)
        self.answer = asyncio.Event()

    async def publish(self, message: Outgoing) -> Stored:
        stored = await super().publish(message)
        await self.answer.wait()
        return stored


async def test_an_observer_that_is_answered_late_knows_what_others_said_since(
    nats_server: NatsServer,
) -> None:
    async with (
        nats_server.bus(Service.SPEC_WATCHER, "late") as bus,
        nats_server.bus(Service.SPEC_WATCHER, "other") as others,
    ):
        late = LateBus(bus)
        observer, other = Observer(late, "spec.changed"), Observer(others, "spec.changed")
        running = [asyncio.create_task(one.run()) for one in (observer, other)]
        await asyncio.gather(observer.ready(), other.ready())
        waiting = asyncio.create_task(observer.observe(KEY, "u", changed("a")))
        await eventually(lambda: other.last(KEY) == changed("a"))
        await other.observe(KEY, "u", changed("b"))
        await eventually(lambda: observer.last(KEY) == changed("b"))
        late.answer.set()
        assert await waiting is not None
        assert observer.last(KEY) == changed("b")
        assert await observer.observe(KEY, "u", changed("b")) is None
        await other.observe(KEY, "u", changed("c"))
        await eventually(lambda: observer.last(KEY) == changed("c"))
        for task in running:
            task.cancel()


async def test_publishing_twice_under_one_id_stores_one(nats_server: NatsServer) -> None:
    async with nats_server.bus(Service.SPEC_WATCHER) as bus:
        message = bus.event(changed("a"), KEY, id="same")
        assert not (await bus.publish(message)).duplicate
        assert (await bus.publish(message)).duplicate
    assert await messages(nats_server, "FACTS") == 1


async def test_a_body_over_the_limit_travels_by_reference(nats_server: NatsServer) -> None:
    large = SpecChanged(uid="u", generation=1, digest="d", object={"text": "x" * 600_000})
    async with (
        nats_server.bus(Service.SPEC_WATCHER) as writer,
        nats_server.bus(Service.ROUTER) as reader,
    ):
        stored = await writer.publish(writer.event(large, KEY, id="large"))
        async with collecting(reader, reader.follow("spec.changed")) as seen:
            await eventually(lambda: [event.data for event in seen] == [large])
        assert stored.sequence == 1


async def test_only_the_writer_of_a_type_may_write_it(nats_server: NatsServer) -> None:
    async with nats_server.bus(Service.ROUTER) as bus:
        with pytest.raises(ValueError, match=r"router does not write spec\.changed"):
            bus.event(changed("a"), KEY, id="x")


async def test_following_what_was_never_provisioned_says_so(bare_nats_server: NatsServer) -> None:
    async with bare_nats_server.connection() as connection:
        follower = Follower(connection, "FACTS", "inferbus.>", Start.everything())
        with pytest.raises(ProblemsError) as caught:
            async for _ in follower.messages():
                pass
    assert caught.value.problems[0].code is ErrorCode.TOPOLOGY_MISSING
