"""Every user against every other's subjects: the server refuses, and nothing is stored."""

import pytest
from nats.aio.client import Client

from inferbus_contracts.api.objects import OBJECT_CALLERS, ObjectVerb, object_subject
from inferbus_contracts.catalog import EVENTS, Stream
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.permissions import inbox_prefix
from inferbus_contracts.services import Service
from inferbus_contracts.subjects import subject
from inferbus_contracts.topology import bucket_subject, timer_subject, topology
from inferbus_shared.bus.jetstream import api
from tests.support.eventually import eventually
from tests.support.nats import NODES, NatsServer, heard

KEY = ObjectKey("ModelServing", "default", "m")
USERS = [service for service in Service if service is not Service.PROVISIONER]


def foreign_publishes(service: Service) -> list[str]:
    """What `service` must not be able to say."""
    subjects = [subject(event.type, KEY) for event in EVENTS.values() if event.writer != service]
    subjects += [
        timer_subject(other, KEY)
        for other in (Service.AUTOSCALER, Service.OPTIMIZER)
        if other is not service
    ]
    subjects += [
        f"$JS.API.CONSUMER.MSG.NEXT.{durable.stream}.{durable.name}"
        for durable in topology(NODES).durables
        if durable.service is not service
    ]
    subjects += [
        f"$JS.ACK.{durable.stream}.{durable.name}.1.1.1.1.1"
        for durable in topology(NODES).durables
        if durable.service is not service
    ]
    subjects += [
        object_subject(verb)
        for verb in ObjectVerb
        if verb not in OBJECT_CALLERS.get(service, frozenset())
    ]
    subjects += [f"dlq.{other.value}.x" for other in Service if other is not service]
    subjects += [
        bucket_subject("members", f"{other.value}.i") for other in Service if other is not service
    ]
    if service is not Service.SPEC_WATCHER:
        subjects.append(bucket_subject("objects", "ModelServing.default.m"))
    subjects += [
        bucket_subject("clock", "anchor"),
        "$JS.API.STREAM.CREATE.MINE",
        "$JS.API.STREAM.MSG.DELETE.FACTS",
        "$JS.API.CONSUMER.DURABLE.CREATE.FACTS.mine",
    ]
    return subjects + provisioning()


def provisioning() -> list[str]:
    """What creates, changes or removes what stands on the server: no service's own is excepted."""
    table = topology(NODES)
    streams = [
        f"$JS.API.STREAM.{verb}.{stream.name}"
        for stream in table.streams
        for verb in ("CREATE", "UPDATE", "DELETE", "PURGE")
    ]
    durables = [
        f"$JS.API.CONSUMER.{call}"
        for item in table.durables
        for call in (
            f"CREATE.{item.stream}.{item.name}",
            f"CREATE.{item.stream}.{item.name}.{item.filter}",
            f"DURABLE.CREATE.{item.stream}.{item.name}",
            f"DELETE.{item.stream}.{item.name}",
        )
    ]
    return streams + durables


def foreign_subscriptions(service: Service) -> list[str]:
    """What `service` must not be able to hear."""
    subjects = [f"{inbox_prefix(other)}.>" for other in Service if other is not service]
    if service is not Service.SPEC_WATCHER:
        if service not in (Service.CONSOLE, Service.CLI):
            subjects += [object_subject(verb) for verb in ObjectVerb]
        subjects.append("$KV.objects.>")
    return subjects


@pytest.fixture
async def stored(nats_server: NatsServer) -> dict[str, int]:
    return await last_sequences(nats_server)


async def last_sequences(server: NatsServer) -> dict[str, int]:
    async with server.connection() as connection:
        names = [*Stream, "DLQ", "KV_objects", "KV_clock"]
        return {
            name: (await api(connection, f"STREAM.INFO.{name}"))["state"]["last_seq"]
            for name in names
        }


@pytest.mark.parametrize("service", USERS)
async def test_the_server_refuses_what_is_not_the_services_own(
    service: Service, nats_server: NatsServer, stored: dict[str, int]
) -> None:
    refused: list[str] = []

    async def on_error(error: Exception) -> None:
        refused.append(str(error).lower())

    client = Client()
    await client.connect(
        nats_server.url,
        user=service.value,
        password=nats_server.passwords[service.value],
        inbox_prefix=inbox_prefix(service).encode(),
        error_cb=on_error,
        allow_reconnect=False,
    )
    publishes = foreign_publishes(service)
    for name in publishes:
        await client.publish(name, b"{}")
    subscriptions = foreign_subscriptions(service)
    for name in subscriptions:
        await client.subscribe(name)
    await heard(client)
    expected = {name.lower() for name in (*publishes, *subscriptions)}

    def accepted() -> set[str]:
        return {name for name in expected if not any(f'"{name}"' in item for item in refused)}

    await eventually(lambda: not accepted(), timeout=5, what=lambda: f"{accepted()} was accepted")
    await client.close()
    assert await last_sequences(nats_server) == stored


async def test_replies_reach_only_the_one_who_asked(nats_server: NatsServer) -> None:
    async with (
        nats_server.connection(Service.SPEC_WATCHER) as server,
        nats_server.connection(Service.CLI) as asker,
    ):
        served = object_subject(ObjectVerb.GET)

        async def answer(message: object) -> None:
            await message.respond(b"here")  # type: ignore[attr-defined]

        await server.client.subscribe(served, cb=answer)
        await heard(server.client)
        reply = await asker.request(served, b"", timeout=5)
        assert reply.data == b"here"
