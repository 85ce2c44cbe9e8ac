"""Age, repetition, deletion and copying of what streams hold mislead no reader."""

import asyncio
from collections.abc import Sequence

from nats.js import JetStreamContext
from prometheus_client import CollectorRegistry

from inferbus_contracts.base import EventData
from inferbus_contracts.catalog import Stream
from inferbus_contracts.events.demand import DemandObserved
from inferbus_contracts.events.spec import SpecChanged
from inferbus_contracts.services import Service
from inferbus_contracts.topology import (
    FACTS_LAST,
    OBJECTS_BUCKET,
    PARTITIONS,
    inbox_stream,
    topology,
)
from inferbus_shared.bus.bucket import Entry, Write
from inferbus_shared.bus.bus import PUBLISH_SECONDS, Bus
from inferbus_shared.bus.connection import Connection
from inferbus_shared.bus.folding import fold
from inferbus_shared.bus.follow import Follower, Start
from inferbus_shared.bus.jetstream import REQUEST_SECONDS, api
from inferbus_shared.bus.messages import Delivered, Outgoing, Received
from inferbus_shared.bus.observer import Observer
from inferbus_shared.bus.pull import LongPoll
from inferbus_shared.bus.service import Runtime
from inferbus_shared.bus.store import store
from tests.support.eventually import eventually
from tests.support.handling import Settings, publish_samples, target
from tests.support.nats import NatsServer

TENTH_OF_A_SECOND = 100_000_000
"""In nanoseconds, as the server counts; the shortest age it takes."""


def changed(generation: int) -> SpecChanged:
    return SpecChanged(uid="u", generation=generation, digest="d", object={})


def fact(bus: Bus, number: int, generation: int) -> Outgoing:
    return bus.event(changed(generation), target(number), id=f"{number}-{generation}")


async def change_stream(server: NatsServer, name: str, **values: object) -> None:
    async with server.connection() as admin:
        config = (await api(admin, f"STREAM.INFO.{name}"))["config"]
        await api(admin, f"STREAM.UPDATE.{name}", config | values)


async def stored(server: NatsServer, stream: str) -> int:
    async with server.connection() as admin:
        return int((await api(admin, f"STREAM.INFO.{stream}"))["state"]["messages"])


async def standing(connection: Connection, stream: str) -> list[Delivered]:
    """What stands in a stream, in order."""
    follower = Follower(connection, stream, ">", Start.everything())
    return [message async for message in follower.snapshot()]


async def generations(bus: Bus) -> dict[str, int]:
    """The picture of whoever starts to follow now."""
    found = [await bus.read(item) async for item in bus.follow("spec.changed").snapshot()]
    return {event.key.name: generation_of(event) for event in found}


def generation_of(event: Received[EventData]) -> int:
    assert isinstance(event.data, SpecChanged)
    return event.data.generation


async def test_the_last_fact_of_a_key_outlives_the_history(nats_server: NatsServer) -> None:
    async with (
        nats_server.bus(Service.SPEC_WATCHER) as writer,
        nats_server.bus(Service.ROUTER) as reader,
    ):
        for number, generation in ((0, 1), (1, 1), (0, 2)):
            await writer.publish(fact(writer, number, generation))
        await eventually(lambda: generations_are(reader, {"m0": 2, "m1": 1}))
        ages = {"max_age": TENTH_OF_A_SECOND, "duplicate_window": TENTH_OF_A_SECOND}
        await change_stream(nats_server, Stream.FACTS, **ages)
        await eventually(lambda: is_empty(nats_server, Stream.FACTS))

        assert await generations(reader) == {"m0": 2, "m1": 1}
        async with nats_server.connection() as admin:
            last = (await api(admin, f"STREAM.INFO.{FACTS_LAST}"))["config"]
        assert not last.get("max_age"), "only a newer fact takes the place of a last one"
        observer = Observer(writer, "spec.changed")
        observing = asyncio.create_task(observer.run())
        assert await observer.observe(target(0), "u", changed(2)) is None, "nothing is new"
        observing.cancel()


async def generations_are(bus: Bus, wanted: dict[str, int]) -> bool:
    return await generations(bus) == wanted


async def is_empty(server: NatsServer, stream: str) -> bool:
    return await stored(server, stream) == 0


async def test_an_id_that_is_stored_again_changes_no_picture(nats_server: NatsServer) -> None:
    """The server forgets ids; what the log then says twice is said once to whoever folds it."""
    seen: dict[str, int] = {}

    def take(event: Received[EventData]) -> None:
        seen[event.key.name] = generation_of(event)

    async with (
        nats_server.bus(Service.SPEC_WATCHER) as writer,
        nats_server.bus(Service.AUTOSCALER) as reader,
    ):
        runtime = Runtime(Service.AUTOSCALER, Settings(), reader, CollectorRegistry())
        await fold(runtime, ["spec.changed"], take)
        running = asyncio.create_task(runtime.run())
        message = fact(writer, 0, 1)
        await writer.publish(message)
        await eventually(lambda: seen == {"m0": 1})

        await change_stream(nats_server, Stream.FACTS, duplicate_window=TENTH_OF_A_SECOND)
        await eventually(lambda: is_stored_anew(writer, message))
        await writer.publish(fact(writer, 1, 1))
        await eventually(lambda: "m1" in seen)
        async with nats_server.connection() as admin:
            history = await standing(admin, Stream.FACTS)
        assert [item.headers["ce-id"] for item in history].count("0-1") > 1
        assert seen == {"m0": 1, "m1": 1}
        assert await generations(reader) == {"m0": 1, "m1": 1}
        runtime.stop()
        await running


async def is_stored_anew(bus: Bus, message: Outgoing) -> bool:
    return not (await store(bus.connection, message)).duplicate


def test_nobody_repeats_a_message_for_longer_than_its_id_is_known() -> None:
    """A late repetition would put an old fact behind a newer one."""
    events = {stream.value for stream in Stream}
    written = [stream for stream in topology().streams if stream.name in events]
    shortest = min(stream.duplicate_window_seconds for stream in written)
    assert shortest > PUBLISH_SECONDS + 2 * REQUEST_SECONDS


async def test_an_inbox_keeps_envelopes_and_puts_a_key_into_one_partition(
    nats_server: NatsServer,
) -> None:
    count = 2 * PARTITIONS
    async with (
        nats_server.bus(Service.METRICS_COLLECTOR) as collector,
        nats_server.bus(Service.ROUTER) as router,
        nats_server.connection() as admin,
    ):
        await publish_samples(collector, count, keys=count)
        demand = DemandObserved(router="r", interval_start_ms=0, interval_ms=1000, models=[])
        for number in range(count):
            await router.publish(router.event(demand, target(number), id=f"demand-{number}"))

        async def copies() -> Sequence[Delivered]:
            found = await standing(admin, inbox_stream(Service.AUTOSCALER))
            return found if len(found) == 2 * count else []

        copied = {item.headers["ce-id"]: item for item in await eventually(copies)}
        for stream in (Stream.TELEMETRY, Stream.DEMAND):
            for original in await standing(admin, stream):
                copy = copied[original.headers["ce-id"]]
                assert original.headers.items() <= copy.headers.items()
                assert copy.headers["Nats-Msg-Id"] == original.headers["ce-id"]
                assert copy.data == original.data
    partition = {id_: copy.subject.split(".")[2] for id_, copy in copied.items()}
    samples = [partition[f"sample-{number}"] for number in range(count)]
    assert samples == [partition[f"demand-{number}"] for number in range(count)]
    assert len(set(samples)) > PARTITIONS / 2, "the keys are spread"


async def test_a_deletion_reaches_whoever_follows_a_bucket(nats_server: NatsServer) -> None:
    """Ours, those of NATS' own tools, and the server's when the time of an entry is over."""
    names = [f"ConfigMap.default.{name}" for name in ("kept", "ours", "deleted", "purged", "old")]
    seen: dict[str, bytes | None] = {}
    async with (
        nats_server.bus(Service.SPEC_WATCHER) as bus,
        nats_server.connection() as admin,
    ):
        bucket = bus.bucket(OBJECTS_BUCKET)
        await bucket.write([Write(name, b"{}", 0) for name in names])
        follower = bucket.follower()

        def take(entry: Entry) -> None:
            seen[entry.key] = entry.value

        async def follow() -> None:
            async for entry in bucket.entries(follower):
                take(entry)

        following = asyncio.create_task(follow())
        await follower.caught_up()
        assert seen == dict.fromkeys(names, b"{}")

        kept, ours, deleted, purged, old = names
        await bucket.write([Write(ours, None, None)])
        tool = await JetStreamContext(admin.client).key_value(OBJECTS_BUCKET)
        await tool.delete(deleted)
        await tool.purge(purged)
        await store(admin, Outgoing(f"$KV.{OBJECTS_BUCKET}.{old}", b"{}", {"Nats-TTL": "1s"}))
        gone: dict[str, bytes | None] = dict.fromkeys((ours, deleted, purged, old))
        await eventually(lambda: seen == {kept: b"{}"} | gone)
        following.cancel()

        late = [bucket.entry(item) async for item in bucket.follower().snapshot()]
        assert {entry.key for entry in late if entry.value is not None} == {kept}


async def test_an_event_that_no_handler_ever_answers_is_told_of(nats_server: NatsServer) -> None:
    """The server gives up on it by itself: the net under a handler that dies with its process."""
    durable = next(item for item in topology().durables if item.service is Service.AUTOSCALER)
    key = f"INBOX_AUTOSCALER.{durable.name}"
    async with (
        nats_server.connection() as admin,
        nats_server.bus(Service.METRICS_COLLECTOR) as writer,
        nats_server.connection(Service.AUTOSCALER) as reader,
    ):
        known = (await api(admin, f"CONSUMER.INFO.{key}"))["config"]
        body = {
            "stream_name": durable.stream,
            "config": known | {"ack_wait": TENTH_OF_A_SECOND // 2, "max_deliver": 2},
        }
        await api(admin, f"CONSUMER.CREATE.{key}.{durable.filter}", body)
        await publish_samples(writer, 4 * PARTITIONS, keys=4 * PARTITIONS)
        poll = LongPoll(reader, durable.stream, durable.name)
        taken = [await poll.next(), await poll.next()]
        assert taken[0].data == taken[1].data
        asking = asyncio.create_task(poll.next())

        async def told() -> bool:
            return any(
                durable.name.encode() in item.data for item in await standing(admin, "ADVISORIES")
            )

        await eventually(told)
        asking.cancel()
        await poll.close()
