"""Events that can't be used: whoever reads them sets them aside, with the reason, and goes on.

Nobody ends, nobody is blinded to the events around them.
"""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from prometheus_client import CollectorRegistry

from inferbus_contracts.base import EventData
from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_contracts.events.spec import SpecChanged
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.services import Service
from inferbus_contracts.topology import PAYLOADS_STORE
from inferbus_shared.bus.bus import Bus
from inferbus_shared.bus.fate import Again, Dead, Reject, Retry, fate_of
from inferbus_shared.bus.folding import fold
from inferbus_shared.bus.follow import Follower, Start
from inferbus_shared.bus.messages import DATA_REFERENCE, Delivered, Outgoing, Received
from inferbus_shared.bus.observer import Observer
from inferbus_shared.bus.service import Runtime
from inferbus_shared.bus.store import store
from inferbus_shared.settings import ServiceSettings
from tests.support.eventually import eventually
from tests.support.nats import NatsServer

GOOD = ObjectKey("ModelServing", "default", "good")


def changed(generation: int) -> SpecChanged:
    return SpecChanged(uid="u", generation=generation, digest="d", object={})


def fact(bus: Bus, name: str, generation: int = 1) -> Outgoing:
    key = ObjectKey("ModelServing", "default", name)
    return bus.event(changed(generation), key, id=f"{name}-{generation}")


def without(message: Outgoing, *headers: str) -> Outgoing:
    kept = {name: value for name, value in message.headers.items() if name not in headers}
    return replace(message, headers=kept)


def saying(message: Outgoing, **headers: str) -> Outgoing:
    said = {f"ce-{name}": value for name, value in headers.items()}
    return replace(message, headers=message.headers | said)


def poison(bus: Bus) -> dict[str, tuple[Outgoing, str]]:
    """(message, what its dead letter says) by name."""

    def one(name: str) -> Outgoing:
        return fact(bus, name)

    bodiless = f"nats-object://{PAYLOADS_STORE}/sha256-of-nothing"
    route = "dev.inferbus.routes.resolved.v1"
    return {
        "text": (replace(one("text"), body=b"\x00\xff rubbish"), "Invalid JSON"),
        "empty": (replace(one("empty"), body=b""), "Invalid JSON"),
        "list": (replace(one("list"), body=b"[1, 2]"), "should be"),
        "shape": (replace(one("shape"), body=b'{"uid": 7, "generation": "x"}'), "generation"),
        "bare": (replace(one("bare"), headers={}), "lacks ce-specversion"),
        "cut": (without(one("cut"), "ce-id", "ce-time"), "lacks ce-id, ce-time"),
        "time": (saying(one("time"), time="yesterday"), "yesterday"),
        "version": (saying(one("version"), specversion="9"), "ce-specversion"),
        "type": (saying(one("type"), type="dev.inferbus.no.such.v1"), "not in the catalog"),
        "foreign": (saying(one("foreign"), type="org.example.thing"), "org.example.thing"),
        "key": (saying(one("key"), subject="nothing"), "nothing"),
        "other-key": (saying(one("other-key"), subject=str(GOOD)), "subject"),
        "other-type": (saying(one("other-type"), type=route), "subject"),
        "gone": (
            replace(one("gone"), headers=one("gone").headers | {DATA_REFERENCE: bodiless}),
            "gone or broken",
        ),
        "no-reference": (
            replace(
                one("no-reference"),
                headers=one("no-reference").headers | {DATA_REFERENCE: "http://x"},
            ),
            "names no body",
        ),
    }


async def dead_letters(server: NatsServer) -> list[Delivered]:
    async with server.connection() as connection:
        follower = Follower(connection, "DLQ", "dlq.>", Start.everything())
        return [message async for message in follower.snapshot()]


async def test_whoever_folds_facts_sets_bad_ones_aside_and_sees_the_others(
    nats_server: NatsServer,
) -> None:
    seen: dict[str, int] = {}

    def take(event: Received[EventData]) -> None:
        assert isinstance(event.data, SpecChanged)
        seen[event.key.name] = event.data.generation

    async with (
        nats_server.bus(Service.SPEC_WATCHER) as writer,
        nats_server.bus(Service.AUTOSCALER) as reader,
    ):
        bad = poison(writer)
        await writer.publish(fact(writer, "before"))
        for message, _ in bad.values():
            await store(writer.connection, message)
        await writer.publish(fact(writer, "behind"))
        runtime = Runtime(Service.AUTOSCALER, Plain(), reader, CollectorRegistry())
        running = asyncio.create_task(runtime.run())
        await fold(runtime, ["spec.changed"], take)
        await eventually(lambda: seen == {"before": 1, "behind": 1})
        await writer.publish(fact(writer, "after"))
        await eventually(lambda: "after" in seen)
        assert not running.done(), "the service goes on"
        letters = {letter.subject: letter for letter in await dead_letters(nats_server)}
        assert len(letters) == len(bad)
        for name, (message, said) in bad.items():
            letter = letters[f"dlq.autoscaler.{message.subject}"]
            assert said in letter.headers["inferbus-reason"], name
            assert letter.data == message.body, name
            own = {key: value for key, value in message.headers.items() if key.startswith("ce-")}
            assert own.items() <= letter.headers.items(), name
            assert letter.headers["inferbus-stream"] == "FACTS_LAST"
        runtime.stop()
        await running


class Plain(ServiceSettings):
    """No settings of its own."""

    service = Service.AUTOSCALER


async def test_an_observer_writes_over_a_fact_that_nobody_can_read(
    nats_server: NatsServer,
) -> None:
    async with nats_server.bus(Service.SPEC_WATCHER) as bus:
        good = bus.event(changed(1), GOOD, id="bad")
        await store(bus.connection, replace(good, body=b'{"uid":'))
        async for observer in running(Observer(bus, "spec.changed")):
            assert await observer.observe(GOOD, "u", changed(1)) is not None
            assert await observer.observe(GOOD, "u", changed(1)) is None
        last = await bus.last("spec.changed", GOOD)
        assert last is not None
        assert last.data == changed(1)
        (letter,) = await dead_letters(nats_server)
        assert letter.data == b'{"uid":'


async def running(observer: Observer) -> AsyncIterator[Observer]:
    task = asyncio.create_task(observer.run())
    try:
        yield observer
    finally:
        task.cancel()


async def test_a_reader_that_starts_again_tells_the_same_letter_once(
    nats_server: NatsServer,
) -> None:
    async with nats_server.bus(Service.SPEC_WATCHER) as writer:
        await store(writer.connection, replace(fact(writer, "bad"), body=b"?"))
        await writer.publish(fact(writer, "good"))
        for _ in range(3):
            async with nats_server.bus(Service.CONSOLE) as reader:
                follower = reader.follow("spec.changed")
                async for event in reader.events(follower):
                    assert event.key.name == "good"
                    break
    assert len(await dead_letters(nats_server)) == 1


def of_the_bus(code: ErrorCode) -> ProblemsError:
    return ProblemsError(Problem(code=code, message="no room"))


@pytest.mark.parametrize(
    "code", [ErrorCode.BUS_FULL, ErrorCode.BUS_TIMEOUT, ErrorCode.BUS_UNREACHABLE]
)
def test_an_event_waits_while_the_bus_is_full_or_away(code: ErrorCode) -> None:
    """Nothing is wrong with it: it must not end among the dead letters meanwhile."""
    fates = [fate_of(of_the_bus(code), number) for number in range(1, 11)]
    delays = [fate.delay_seconds for fate in fates if isinstance(fate, Again)]
    assert len(delays) == 10
    assert delays == sorted(delays)
    assert 300 < sum(delays) < 600
    assert isinstance(fate_of(of_the_bus(code), 11), Dead)


def test_what_is_wrong_with_an_event_itself_never_heals() -> None:
    assert isinstance(fate_of(of_the_bus(ErrorCode.POISON_EVENT), 1), Dead)
    assert isinstance(fate_of(Reject("no"), 1), Dead)
    assert isinstance(fate_of(ValueError("a bug"), 1), Dead)
    mixed = ProblemsError(
        *of_the_bus(ErrorCode.BUS_FULL).problems, *of_the_bus(ErrorCode.WRONG_TYPE).problems
    )
    assert isinstance(fate_of(mixed, 1), Dead)
    assert fate_of(Retry(0.5, "later"), 1) == Again(0.5)
