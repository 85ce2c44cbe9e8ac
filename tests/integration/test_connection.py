"""A server that goes away for long, or dies between two polls: everything goes on with its return.

Neither depends on anybody's patience: not on a number of attempts, and not on the time after which
silence is taken for a loss.
"""

import asyncio
import contextlib
import itertools
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest

from inferbus_contracts.events.spec import SpecChanged
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.services import Service
from inferbus_contracts.topology import PARTITIONS, topology
from inferbus_shared.bus import connection, consume, pull
from inferbus_shared.bus.bus import Bus
from inferbus_shared.bus.connection import Connection
from inferbus_shared.bus.jetstream import api
from tests.support.eventually import eventually
from tests.support.handling import consuming, publish_samples, sample_number
from tests.support.nats import NatsServer

KEY = ObjectKey("ModelServing", "default", "m")
LONG_SECONDS = 1000.0
PAUSE_SECONDS = 0.2
CLIENTS_OWN_LIMIT = 60
"""After that many attempts the client gives up unless it is told not to."""


@contextlib.asynccontextmanager
async def heartbeat() -> AsyncIterator[list[float]]:
    """When the event loop came round."""
    beats: list[float] = []

    async def beat() -> None:
        while True:
            beats.append(time.monotonic())
            await asyncio.sleep(0.005)

    beating = asyncio.create_task(beat())
    try:
        yield beats
    finally:
        beating.cancel()


def attempts(of: Connection) -> int:
    """How often the client tried in vain to reconnect."""
    return of.client.server_pool[0].reconnects


async def test_it_reconnects_however_long_the_server_was_away(
    nats_server: NatsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "RECONNECT_WAIT_SECONDS", 0.005)
    seen: list[int] = []

    async def fold(reader: Bus) -> None:
        async for event in reader.events(reader.follow("spec.changed")):
            assert isinstance(event.data, SpecChanged)
            seen.append(event.data.generation)

    async def publish(writer: Bus, generation: int) -> None:
        data = SpecChanged(uid="u", generation=generation, digest="d", object={})
        await writer.publish(writer.event(data, KEY, id=f"{generation}"))

    async with (
        nats_server.bus(Service.SPEC_WATCHER) as writer,
        nats_server.bus(Service.ROUTER) as reader,
        heartbeat() as beats,
    ):
        following = asyncio.create_task(fold(reader))
        await publish(writer, 1)
        await eventually(lambda: seen == [1])
        nats_server.kill()
        gone = time.monotonic()
        publishing = asyncio.create_task(publish(writer, 2))
        both = (writer.connection, reader.connection)
        await eventually(lambda: min(map(attempts, both)) > 2 * CLIENTS_OWN_LIMIT)
        away = time.monotonic() - gone
        pauses = [later - earlier for earlier, later in itertools.pairwise(beats)]
        assert max(pauses) < away / 2, "the loop came round all the time"
        nats_server.start()
        await publishing
        await eventually(lambda: seen == [1, 2])
        assert not following.done()
        following.cancel()


async def test_the_return_of_the_server_is_all_a_poll_waits_for(
    nats_server: NatsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server forgets polls; no expiry or silence may have to pass before they are put again."""
    for name in ("EXPIRES_SECONDS", "HEARTBEAT_SECONDS"):
        monkeypatch.setattr(pull, name, LONG_SECONDS if name.startswith("H") else 3 * LONG_SECONDS)
    done: set[int] = set()
    async with (
        nats_server.bus(Service.METRICS_COLLECTOR) as writer,
        nats_server.bus(Service.AUTOSCALER) as bus,
        consuming(bus, lambda event: done.add(sample_number(event))),
    ):
        await eventually(lambda: polls_stand(nats_server))
        nats_server.kill()
        nats_server.start()
        await publish_samples(writer, 2 * PARTITIONS, keys=2 * PARTITIONS)
        await eventually(lambda: done == set(range(2 * PARTITIONS)))


async def test_a_durable_that_is_gone_is_asked_for_again_with_pauses(
    nats_server: NatsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pull, "RETRY_SECONDS", PAUSE_SECONDS / 2)
    monkeypatch.setattr(consume, "MISSING_SECONDS", PAUSE_SECONDS)
    asked: list[float] = []
    gone = next(item for item in topology().durables if item.service is Service.AUTOSCALER)
    async with nats_server.bus(Service.AUTOSCALER) as bus, nats_server.connection() as admin:
        client = bus.connection.client
        publish = client.publish

        async def noticed(subject: str, *args: Any, **options: Any) -> None:
            if subject.endswith(f"MSG.NEXT.{gone.stream}.{gone.name}"):
                asked.append(time.monotonic())
            await publish(subject, *args, **options)

        monkeypatch.setattr(client, "publish", noticed)
        async with consuming(bus, lambda event: None):
            await eventually(lambda: polls_stand(nats_server))
            await api(admin, f"CONSUMER.DELETE.{gone.stream}.{gone.name}")
            await eventually(lambda: len(asked) >= 5)
    pauses = [later - earlier for earlier, later in itertools.pairwise(asked)]
    assert min(pauses) > 0.9 * PAUSE_SECONDS


async def polls_stand(server: NatsServer) -> bool:
    """Whether every partition of the autoscaler's inbox is being polled."""
    async with server.connection() as admin:
        waiting = [
            (await api(admin, f"CONSUMER.INFO.{item.stream}.{item.name}"))["num_waiting"]
            for item in topology().durables
            if item.service is Service.AUTOSCALER
        ]
    return waiting == [1] * PARTITIONS
