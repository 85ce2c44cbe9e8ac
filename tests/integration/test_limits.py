"""The limits of the store: what is full refuses clearly and keeps all that it acknowledged.

Room is all it takes to go on; large events travel by the payload store, whole.
"""

from collections.abc import AsyncIterator, Callable

import pytest
import pytest_asyncio

from inferbus_contracts.errors import ErrorCode, ProblemsError
from inferbus_contracts.events.spec import SpecChanged
from inferbus_contracts.events.state import StateStored
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.services import Service
from inferbus_contracts.subjects import key_tokens, subject
from inferbus_contracts.topology import MAX_BODY_BYTES, OBJECTS_BUCKET
from inferbus_shared.bus.bucket import Bucket, Write
from inferbus_shared.bus.bus import Bus
from inferbus_shared.bus.direct import last_message
from inferbus_shared.bus.jetstream import api
from inferbus_shared.bus.messages import Outgoing
from tests.support.eventually import eventually
from tests.support.nats import NatsServer, running_server

SMALL_STORE_BYTES = 24 * 1024 * 1024
TEXT = "x" * 200_000


def key(number: int) -> ObjectKey:
    return ObjectKey("ConfigMap", "default", f"m{number}")


@pytest_asyncio.fixture
async def small_server() -> AsyncIterator[NatsServer]:
    """A server that may store 24 MiB."""
    with running_server(storage_bytes=SMALL_STORE_BYTES) as server:
        await server.provision()
        yield server


def assert_told_as_full(error: ProblemsError) -> None:
    (problem,) = error.problems
    assert problem.code is ErrorCode.BUS_FULL
    assert "storage is used up" in problem.message
    assert "free disk space or raise the storage limit" in problem.remedy


async def fill_bucket(bucket: Bucket) -> int:
    """Write entries until one is refused; how many were acknowledged."""
    for number in range(1000):
        try:
            await bucket.write([Write(key_tokens(key(number)), TEXT.encode(), 0)])
        except ProblemsError as error:
            assert_told_as_full(error)
            return number
    raise AssertionError("the bucket is never full")


async def test_a_full_bucket_refuses_and_keeps_every_object(small_server: NatsServer) -> None:
    async with small_server.bus(Service.SPEC_WATCHER) as bus:
        bucket = bus.bucket(OBJECTS_BUCKET)
        count = await fill_bucket(bucket)
        assert count > 5
        for number in range(count):
            entry = await bucket.get(key_tokens(key(number)))
            assert entry is not None
            assert entry.value == TEXT.encode()
        assert await bucket.get(key_tokens(key(count))) is None

        together = [Write(key_tokens(key(number)), TEXT.encode(), 0) for number in (900, 901)]
        with pytest.raises(ProblemsError):
            await bucket.write(together)
        assert await bucket.get(key_tokens(key(900))) is None, "all or nothing"

        gone = [Write(key_tokens(key(number)), None, None) for number in range(3)]
        await bucket.write(gone)
        await bucket.write(together)
        assert await bucket.get(key_tokens(key(901))) is not None, "room is all it takes"


async def publish_until_full(bus: Bus, message: Callable[[int], Outgoing]) -> int:
    """How many were acknowledged before one was refused, for want of room."""
    for number in range(1000):
        try:
            await bus.publish(message(number))
        except ProblemsError as error:
            assert_told_as_full(error)
            assert number > 0
            return number
    raise AssertionError("the store is never full")


def large(bus: Bus, number: int, size: int = 600_000) -> Outgoing:
    fact = SpecChanged(
        uid="u", generation=1, digest="d", object={"text": f"{number}-" + "y" * size}
    )
    return bus.event(fact, key(number), id=f"large-{number}")


async def test_a_full_payload_store_refuses_and_keeps_every_body(small_server: NatsServer) -> None:
    async with (
        small_server.bus(Service.SPEC_WATCHER) as writer,
        small_server.bus(Service.CONSOLE) as reader,
    ):
        count = await publish_until_full(writer, lambda number: large(writer, number))
        for number in range(count):
            event = await reader.last("spec.changed", key(number))
            assert event is not None
            assert isinstance(event.data, SpecChanged)
            assert event.data.object["text"] == f"{number}-" + "y" * 600_000
        assert await reader.last("spec.changed", key(count)) is None, "no event without its body"
        await writer.publish(large(writer, 500, size=10))  # needs no room there


async def test_a_store_that_is_full_altogether_refuses_decisions_and_goes_on_with_room(
    small_server: NatsServer,
) -> None:
    def state(bus: Bus, number: int) -> Outgoing:
        stored = StateStored(
            state_schema=1,
            applied_sequence=number,
            cause=f"c{number}",
            decision_id="",
            state={"text": TEXT},
        )
        return bus.event(stored, key(number), event_type="state.decided", id=f"s{number}")

    async with small_server.bus(Service.AUTOSCALER) as bus:
        count = await publish_until_full(bus, lambda number: state(bus, number))
        for number in range(count):
            place = subject("state.decided", key(number))
            message = await last_message(bus.connection, "DECISIONS", place)
            assert message is not None
            assert message.data == state(bus, number).body
        async with small_server.connection() as admin:
            await api(admin, "STREAM.PURGE.DECISIONS", {"keep": 2})
        stored = await bus.publish(state(bus, count))
        assert stored.sequence > count


@pytest.mark.parametrize("size_bytes", [MAX_BODY_BYTES - 200, MAX_BODY_BYTES + 200, 3_000_000])
async def test_an_event_of_any_size_comes_back_whole(
    nats_server: NatsServer, size_bytes: int
) -> None:
    async with (
        nats_server.bus(Service.SPEC_WATCHER) as writer,
        nats_server.bus(Service.CONSOLE) as reader,
    ):
        message = large(writer, 1, size_bytes)
        await writer.publish(message)
        await writer.publish(message)
        follower = reader.follow("spec.changed")

        async def read() -> int:
            async for event in reader.events(follower):
                assert isinstance(event.data, SpecChanged)
                return len(event.data.object["text"])
            return 0

        assert await eventually(read) == size_bytes + 2


async def test_a_message_that_no_server_takes_is_told(nats_server: NatsServer) -> None:
    async with nats_server.bus(Service.SPEC_WATCHER) as bus:
        bucket = bus.bucket(OBJECTS_BUCKET)
        with pytest.raises(ProblemsError) as caught:
            await bucket.write([Write(key_tokens(key(1)), b"x" * 3_000_000, 0)])
        (problem,) = caught.value.problems
        assert problem.code is ErrorCode.TOO_LARGE
        assert "3000000 bytes" in problem.message
        assert problem.remedy
