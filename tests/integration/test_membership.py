"""Who of a service's instances is there, who works on what, and how soon a dead one is noticed."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, field

import pytest

from inferbus_contracts.errors import ErrorCode, ProblemsError
from inferbus_contracts.services import Service
from inferbus_contracts.topology import MEMBERS_BUCKET, bucket_stream
from inferbus_shared.bus import membership as module
from inferbus_shared.bus.bus import Bus
from inferbus_shared.bus.connection import Connection
from inferbus_shared.bus.jetstream import api
from inferbus_shared.bus.membership import Membership
from inferbus_shared.clock import SystemClock
from tests.support.eventually import eventually
from tests.support.nats import NatsServer

KEYS = frozenset(f"ModelServing/default/m{number}" for number in range(20))

TTL_SECONDS = 1.5
RENEW_SECONDS = 0.5


@pytest.fixture(autouse=True)
def _brisk(monkeypatch: pytest.MonkeyPatch) -> None:
    """A quarter of the real times, in their proportion."""
    monkeypatch.setattr(module, "MEMBER_TTL_SECONDS", TTL_SECONDS)
    monkeypatch.setattr(module, "RENEW_SECONDS", RENEW_SECONDS)


@dataclass
class Instance:
    """One instance and what it was told."""

    membership: Membership
    connection: Connection
    told: list[tuple[str, ...]] = field(default_factory=list)

    @property
    def owned(self) -> frozenset[str]:
        return self.membership.owned(KEYS)


@contextlib.asynccontextmanager
async def instance(
    server: NatsServer, name: str, service: Service = Service.METRICS_COLLECTOR
) -> AsyncIterator[Instance]:
    async with server.connection(service, name) as connection:
        membership = Membership(Bus(connection, SystemClock()), name)
        one = Instance(membership, connection)
        membership.on_change(lambda: one.told.append(membership.members))
        running = asyncio.create_task(membership.run())
        await membership.ready()
        try:
            yield one
        finally:
            running.cancel()
            await asyncio.wait([running])


def everyone_knows(instances: Iterable[Instance], *names: str) -> bool:
    return all(one.membership.members == names for one in instances)


def active(instances: Iterable[Instance]) -> list[bool]:
    return [one.membership.is_active for one in instances]


def assert_shared(instances: Iterable[Instance]) -> None:
    """Every key has one owner, and nobody more than a fair share."""
    shares = [one.owned for one in instances]
    assert sum(map(len, shares)) == len(KEYS)
    assert frozenset().union(*shares) == KEYS
    assert max(map(len, shares)) <= -(-len(KEYS) // len(shares))


async def test_instances_share_the_keys_and_the_oldest_is_active(nats_server: NatsServer) -> None:
    async with instance(nats_server, "z") as first:
        assert first.owned == KEYS
        assert first.membership.is_active
        async with instance(nats_server, "a") as second:
            both = (first, second)
            await eventually(lambda: everyone_knows(both, "z", "a"))
            assert_shared(both)
            assert active(both) == [True, False]
            before = first.owned, second.owned
            async with instance(nats_server, "m") as third:
                three = (first, second, third)
                await eventually(lambda: everyone_knows(three, "z", "a", "m"))
                assert_shared(three)
                assert active(three) == [True, False, False]
            await eventually(lambda: everyone_knows(both, "z", "a"))
            assert (first.owned, second.owned) == before
    assert first.told[:3] == [("z", "a"), ("z", "a", "m"), ("z", "a")]


async def test_whoever_leaves_hands_over_at_once(nats_server: NatsServer) -> None:
    async with contextlib.AsyncExitStack() as leaving, contextlib.AsyncExitStack() as stack:
        first = await leaving.enter_async_context(instance(nats_server, "first"))
        second = await stack.enter_async_context(instance(nats_server, "second"))
        await eventually(lambda: everyone_knows((first, second), "first", "second"))
        renewed = time.monotonic()
        await leaving.aclose()
        await eventually(lambda: second.owned == KEYS)
        assert time.monotonic() - renewed < TTL_SECONDS - RENEW_SECONDS
        assert second.membership.is_active


async def test_a_killed_instance_loses_its_keys_within_its_time_to_live(
    nats_server: NatsServer,
) -> None:
    async with instance(nats_server, "first") as first, instance(nats_server, "second") as second:
        both = (first, second)
        await eventually(lambda: everyone_knows(both, "first", "second"))
        assert active(both) == [True, False]
        killed = time.monotonic()
        await first.connection.client.close()
        assert second.owned != KEYS
        await eventually(lambda: second.owned == KEYS)
        seconds = time.monotonic() - killed
        assert second.membership.is_active
        assert second.told[-1] == ("second",)
    assert TTL_SECONDS - RENEW_SECONDS - 0.2 < seconds < TTL_SECONDS + 2 * RENEW_SECONDS


async def test_an_instance_that_renews_stays(nats_server: NatsServer) -> None:
    async with instance(nats_server, "first") as first, instance(nats_server, "second") as second:
        both = (first, second)
        await eventually(lambda: everyone_knows(both, "first", "second"))
        told = len(first.told), len(second.told)
        started = time.monotonic()
        await eventually(lambda: time.monotonic() - started > TTL_SECONDS + RENEW_SECONDS)
        assert everyone_knows(both, "first", "second")
        assert (len(first.told), len(second.told)) == told


async def test_members_of_another_service_do_not_count(nats_server: NatsServer) -> None:
    async with (
        instance(nats_server, "other", Service.SPEC_WATCHER) as other,
        instance(nats_server, "first") as first,
        instance(nats_server, "second") as second,
    ):
        await eventually(lambda: everyone_knows((first, second), "first", "second"))
        assert_shared((first, second))
        assert other.membership.members == ("other",)
        assert other.owned == KEYS
        assert active((other, first, second)) == [True, True, False]


async def test_instances_with_any_name_agree(nats_server: NatsServer) -> None:
    """An instance is called after its host, and hosts have dots."""
    names = ("b.example.org", "a.example.org")
    async with instance(nats_server, names[0]) as first, instance(nats_server, names[1]) as second:
        await eventually(lambda: len(first.membership.members) == 2)
        await eventually(lambda: len(second.membership.members) == 2)
        assert everyone_knows((first, second), *names)
        assert_shared((first, second))


async def test_an_instance_that_cannot_see_the_others_says_so(nats_server: NatsServer) -> None:
    async with nats_server.connection() as admin:
        await api(admin, f"STREAM.DELETE.{bucket_stream(MEMBERS_BUCKET)}")
    async with nats_server.bus(Service.METRICS_COLLECTOR) as bus:
        with pytest.raises(ProblemsError) as caught:
            async with asyncio.timeout(TTL_SECONDS):
                await Membership(bus, "first").run()
    assert caught.value.problems[0].code is ErrorCode.TOPOLOGY_MISSING
