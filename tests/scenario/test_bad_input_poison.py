"""Rubbish on the bus of a running platform: set aside, told and passed; no service ends over it."""

import json
from collections.abc import Iterator
from dataclasses import replace

import pytest

from inferbus_contracts.events.metrics import MetricsSampled
from inferbus_contracts.events.route import RoutePublished
from inferbus_contracts.events.spec import SpecChanged
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.services import Service
from inferbus_contracts.subjects import subject, wildcard
from inferbus_shared.bus.bus import Bus
from inferbus_shared.bus.follow import Follower, Start
from inferbus_shared.bus.jetstream import api
from inferbus_shared.bus.messages import Delivered, Outgoing
from inferbus_shared.bus.store import store
from tests.support.eventually import eventually
from tests.support.platform import Platform, model_manifests, running_platform

pytestmark = pytest.mark.slow

CHAT = ObjectKey("ModelServing", "default", "chat")
ROUTE = ObjectKey("ModelRoute", "default", "chat")


@pytest.fixture(scope="module")
def platform() -> Iterator[Platform]:
    """A platform that scales and serves `chat`, with the processes that it began with."""
    with running_platform("--startup", "0") as running:
        running.apply(*model_manifests("chat", scaling=(1, 3)))
        running.inferbus("apply", "-f", "-", "--wait", stdin=json.dumps(model_manifests("chat")[0]))
        before = {name: row.pid for name, row in running.processes().items()}
        yield running
        assert running.complete("chat").status == 200
        assert {name: row.pid for name, row in running.processes().items()} == before


def rubbish(good: Outgoing, name: str) -> dict[str, Outgoing]:
    """One of each sort, in place of a good event."""

    def other(**changes: object) -> Outgoing:
        changed: Outgoing = replace(good, **changes)  # type: ignore[arg-type]
        return changed

    unknown = good.headers | {"ce-type": "dev.inferbus.never.heard.v1", "Nats-Msg-Id": f"{name}-u"}
    return {
        "not JSON": other(body=b"\x00\xff{", headers=good.headers | {"Nats-Msg-Id": f"{name}-j"}),
        "wrong shape": other(
            body=b'{"uid": [], "targets": 7}', headers=good.headers | {"Nats-Msg-Id": f"{name}-s"}
        ),
        "unknown type": other(headers=unknown),
        "truncated envelope": other(
            headers={"ce-specversion": "1.0", "Nats-Msg-Id": f"{name}-t"}, body=good.body[:10]
        ),
        "no envelope": other(headers={}, body=b""),
    }


def elsewhere(message: Outgoing, number: int) -> Outgoing:
    """The same about an object of its own: of facts about one object only the last is kept."""
    id_ = message.headers.get("Nats-Msg-Id", "")
    return replace(
        message,
        subject=f"{message.subject}-{number}",
        headers=message.headers | {"Nats-Msg-Id": f"{id_}-{number}"},
    )


async def letters(platform: Platform, about: str) -> list[Delivered]:
    async with platform.bus() as bus:
        every = Follower(bus.connection, "DLQ", f"dlq.{about}", Start.everything())
        return [letter async for letter in every.snapshot()]


async def status_counts_them(platform: Platform) -> bool:
    told = json.loads(platform.inferbus("status", "-o", "json").stdout)
    return bool(told["bus"]["deadLetters"] == len(await letters(platform, ">")))


async def publish(bus: Bus, messages: dict[str, Outgoing]) -> None:
    for message in messages.values():
        await store(bus.connection, message)


async def test_an_inbox_sets_rubbish_aside_and_goes_on(platform: Platform) -> None:
    async with platform.bus(Service.METRICS_COLLECTOR) as bus:
        sample = MetricsSampled(
            policy="AutoscalingPolicy/default/none", taken_at_ms=1, window_ms=1, targets=[]
        )
        good = bus.event(sample, CHAT, id="good-sample")
        bad = rubbish(good, "sample")
        await publish(bus, bad)

    async def aside() -> list[Delivered]:
        found = await letters(platform, "autoscaler.inbox.autoscaler.>")
        return found if len(found) == len(bad) else []

    found = await eventually(aside, timeout=30)
    assert sorted(letter.data for letter in found) == sorted(one.body for one in bad.values())
    assert all(letter.headers["inferbus-reason"] for letter in found)
    assert all(letter.headers["inferbus-consumer"].startswith("autoscaler-p") for letter in found)
    (durable,) = {letter.headers["inferbus-consumer"] for letter in found}
    last = max(int(letter.headers["inferbus-sequence"]) for letter in found)
    await eventually(lambda: is_behind(platform, durable, last), timeout=30)
    await eventually(lambda: status_counts_them(platform), timeout=30)
    told = platform.inferbus("tap", "--dead", "--count", str(len(bad))).stdout
    assert len(told.splitlines()) == len(bad)
    assert "metrics.sampled" in told


async def is_behind(platform: Platform, durable: str, sequence: int) -> bool:
    """Whether the line has moved on: a later event was handled too."""
    async with platform.bus(Service.PROVISIONER) as bus:
        info = await api(bus.connection, f"CONSUMER.INFO.INBOX_AUTOSCALER.{durable}")
        return int(info["ack_floor"]["stream_seq"]) > sequence


async def test_followers_and_observers_set_rubbish_aside_and_keep_what_they_knew(
    platform: Platform,
) -> None:
    """Every service follows spec.changed, and the spec-watcher observes it."""
    async with platform.bus(Service.SPEC_WATCHER) as bus:
        fact = SpecChanged(uid="u", generation=1, digest="d", object={})
        bad = rubbish(bus.event(fact, CHAT, id="good-fact"), "fact")
        for number, message in enumerate(bad.values()):
            await store(bus.connection, elsewhere(message, number))
        await store(bus.connection, bad["wrong shape"])
        for service in ("autoscaler", "console", "router-config-publisher", "spec-watcher"):

            async def aside(service: str = service) -> bool:
                found = await letters(platform, f"{service}.{wildcard('spec.changed')}")
                return len(found) == len(bad) + 1

            await eventually(aside, timeout=30, what=service)
    assert platform.complete("chat").status == 200
    platform.apply(*model_manifests("behind"))
    await eventually(lambda: platform.complete("behind").status == 200, timeout=60)


async def test_routers_keep_serving_when_a_route_cannot_be_read(platform: Platform) -> None:
    async with platform.bus(Service.ROUTER_CONFIG_PUBLISHER) as bus:
        last = await bus.last("route.published", ROUTE)
        assert last is not None
        assert isinstance(last.data, RoutePublished)
        good = bus.event(last.data, ROUTE, id="good-route")
        await publish(bus, rubbish(good, "route"))

    async def aside() -> bool:
        return len(await letters(platform, f"router.{subject('route.published', ROUTE)}")) >= 1

    await eventually(aside, timeout=30)
    assert platform.complete("chat").status == 200
