"""Durable consumption: nothing lost, nothing spins, the order of a key is that of the log."""

import asyncio
import contextlib
import itertools
import time
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from nats.aio.msg import Msg
from prometheus_client import CollectorRegistry

from inferbus_contracts.base import EventData
from inferbus_contracts.events.metrics import MetricsSampled
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.services import Service
from inferbus_contracts.stream_specs import DurableSpec
from inferbus_contracts.topology import topology
from inferbus_shared.bus.bus import Bus
from inferbus_shared.bus.consume import BusBroker
from inferbus_shared.bus.fate import Reject, Retry
from inferbus_shared.bus.follow import Follower, Start
from inferbus_shared.bus.jetstream import api
from inferbus_shared.bus.messages import Delivered, Outgoing, Received
from inferbus_shared.bus.metrics import BusMetrics
from inferbus_shared.bus.readiness import missing
from inferbus_shared.bus.store import store
from tests.support.eventually import eventually
from tests.support.nats import NatsServer

Handler = Callable[[Received[EventData], Msg], Awaitable[None]]


def durables() -> list[DurableSpec]:
    return [item for item in topology().durables if item.service is Service.AUTOSCALER]


@contextlib.asynccontextmanager
async def consuming(bus: Bus, handler: Handler) -> AsyncIterator[BusBroker]:
    broker = BusBroker(bus, BusMetrics(bus.service, CollectorRegistry()))
    for durable in durables():
        broker.handle_durable(durable, handler)
    await broker.start()
    try:
        yield broker
    finally:
        for subscriber in broker.subscribers:
            await subscriber.stop()


def target(number: int) -> ObjectKey:
    return ObjectKey("ModelServing", "default", f"m{number}")


async def publish_samples(bus: Bus, count: int, keys: int = 1, first: int = 0) -> None:
    for number in range(first, first + count):
        sample = MetricsSampled(
            policy="AutoscalingPolicy/default/p", taken_at_ms=number, window_ms=0, targets=[]
        )
        await bus.publish(bus.event(sample, target(number % keys), id=f"sample-{number}"))


async def dead_letters(server: NatsServer) -> list[Delivered]:
    async with server.connection() as connection:
        follower = Follower(connection, "DLQ", "dlq.>", Start.everything())
        return [message async for message in follower.snapshot()]


def number_of(event: Received[EventData]) -> int:
    assert isinstance(event.data, MetricsSampled)
    return event.data.taken_at_ms


async def test_three_instances_keep_the_order_of_every_key(nats_server: NatsServer) -> None:
    handled: list[tuple[str, int]] = []
    by_instance = [0, 0, 0]

    def handler(instance: int) -> Handler:
        async def handle(event: Received[EventData], _: Msg) -> None:
            await asyncio.sleep(0.001)
            handled.append((event.key.name, number_of(event)))
            by_instance[instance] += 1

        return handle

    async with contextlib.AsyncExitStack() as stack:
        writer = await stack.enter_async_context(nats_server.bus(Service.METRICS_COLLECTOR))
        for instance in range(3):
            bus = await stack.enter_async_context(
                nats_server.bus(Service.AUTOSCALER, f"a{instance}")
            )
            await stack.enter_async_context(consuming(bus, handler(instance)))
        await publish_samples(writer, 300, keys=7)
        await eventually(lambda: len(handled) >= 300)
    for key in range(7):
        numbers = [number for name, number in handled if name == f"m{key}"]
        assert numbers == sorted(numbers)
    assert len(handled) == 300
    assert min(by_instance) > 30, by_instance


async def test_retry_holds_the_line_and_waits_its_delay(nats_server: NatsServer) -> None:
    calls: list[tuple[int, float]] = []

    async def handle(event: Received[EventData], _: Msg) -> None:
        calls.append((number_of(event), time.monotonic()))
        if number_of(event) == 0 and len(calls) < 4:
            raise Retry(0.2, "not yet")

    async with (
        nats_server.bus(Service.METRICS_COLLECTOR) as writer,
        nats_server.bus(Service.AUTOSCALER) as bus,
        consuming(bus, handle),
    ):
        await publish_samples(writer, 2)
        await eventually(lambda: len(calls) == 5)
    assert [number for number, _ in calls] == [0, 0, 0, 0, 1]
    pauses = [later[1] - earlier[1] for earlier, later in itertools.pairwise(calls[:4])]
    assert min(pauses) >= 0.19
    assert not await dead_letters(nats_server)


async def test_what_can_never_work_goes_aside_and_the_rest_goes_on(
    nats_server: NatsServer,
) -> None:
    done: list[int] = []

    async def handle(event: Received[EventData], _: Msg) -> None:
        if number_of(event) == 0:
            raise Reject("no such target")
        if number_of(event) == 1:
            raise RuntimeError("a bug")
        done.append(number_of(event))

    async with (
        nats_server.bus(Service.METRICS_COLLECTOR) as writer,
        nats_server.bus(Service.AUTOSCALER) as bus,
        consuming(bus, handle),
    ):
        await publish_samples(writer, 2)
        event = writer.event(
            MetricsSampled(policy="p", taken_at_ms=0, window_ms=0, targets=[]),
            target(0),
            id="poison",
        )
        poison = Outgoing(event.subject, b'{"takenAtMs": "soon"}', event.headers)
        await store(writer.connection, poison)
        await publish_samples(writer, 1, first=2)
        await eventually(lambda: done == [2])
    letters = {letter.headers["ce-id"]: letter for letter in await dead_letters(nats_server)}
    assert set(letters) == {"sample-0", "sample-1", "poison"}
    assert letters["sample-0"].headers["inferbus-reason"] == "no such target"
    assert "RuntimeError: a bug" in letters["sample-1"].headers["inferbus-reason"]
    assert "takenAtMs" in letters["poison"].headers["inferbus-reason"]
    assert letters["poison"].data == b'{"takenAtMs": "soon"}'


@pytest.mark.slow
async def test_a_server_killed_under_load_loses_and_repeats_nothing(
    nats_server: NatsServer,
) -> None:
    done: list[int] = []

    async def handle(event: Received[EventData], _: Msg) -> None:
        done.append(number_of(event))

    async with (
        nats_server.bus(Service.METRICS_COLLECTOR) as writer,
        nats_server.bus(Service.AUTOSCALER) as bus,
        consuming(bus, handle),
    ):
        publishing = asyncio.create_task(publish_samples(writer, 200, keys=5))
        await eventually(lambda: len(done) > 50)
        nats_server.kill()
        nats_server.start()
        await publishing
        await eventually(lambda: set(done) == set(range(200)), timeout=30)


async def test_a_missing_durable_is_reported_and_found_again(nats_server: NatsServer) -> None:
    done: list[int] = []

    async def handle(event: Received[EventData], _: Msg) -> None:
        done.append(number_of(event))

    async with (
        nats_server.connection() as admin,
        nats_server.bus(Service.METRICS_COLLECTOR) as writer,
        nats_server.bus(Service.AUTOSCALER) as bus,
        consuming(bus, handle) as broker,
    ):
        assert not await missing(bus.connection, durables())
        for durable in durables():
            await api(admin, f"CONSUMER.DELETE.{durable.stream}.{durable.name}")
        await eventually(lambda: len(broker.missing) == len(durables()))
        assert len(await missing(bus.connection, durables())) == len(durables())
        await nats_server.provision()
        await publish_samples(writer, 3)
        await eventually(lambda: done == [0, 1, 2])
        assert not await missing(bus.connection, durables())


async def test_stopping_hands_the_partitions_over_at_once(nats_server: NatsServer) -> None:
    done: list[str] = []

    def handler(name: str) -> Handler:
        async def handle(event: Received[EventData], _: Msg) -> None:
            done.append(name)

        return handle

    async with (
        nats_server.bus(Service.METRICS_COLLECTOR) as writer,
        nats_server.bus(Service.AUTOSCALER, "a") as first,
        nats_server.bus(Service.AUTOSCALER, "b") as second,
    ):
        async with consuming(first, handler("a")):
            await publish_samples(writer, 8, keys=8)
            await eventually(lambda: len(done) == 8)
        async with consuming(second, handler("b")):
            await publish_samples(writer, 8, keys=8, first=8)
            await eventually(lambda: len(done) == 16, timeout=5, what="nothing waits for 'a'")
    assert done[8:] == ["b"] * 8
