"""An instance that stands by writes nothing, and one that takes over looks at everything."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from publisher_builders import World, fact, pod, route, route_key, server, server_key

from inferbus_contracts.events.route import RoutesResolved
from inferbus_contracts.keys import ObjectKey
from inferbus_router_config_publisher.core import Affected, Join
from inferbus_router_config_publisher.policy_parts import Batch, PublishedTable
from inferbus_router_config_publisher.publication import Publisher
from inferbus_router_config_publisher.resolution import Resolver
from inferbus_router_config_publisher.telemetry import TableMetrics
from tests.support.eventually import eventually


class Membership:
    """Says who is active, as the test wants it."""

    def __init__(self, *, is_active: bool = False) -> None:
        self.is_active = is_active
        self._listeners: list[Callable[[], None]] = []

    def on_change(self, callback: Callable[[], None]) -> None:
        self._listeners.append(callback)

    def take_over(self) -> None:
        self.is_active = True
        for listener in self._listeners:
            listener()


class Log:
    """A log of parts in memory."""

    def __init__(self) -> None:
        self.loads = 0
        self.stored: list[ObjectKey] = []

    async def load(self) -> PublishedTable:
        self.loads += 1
        return PublishedTable.read([], 0)

    async def store(self, batch: Batch, causes: object) -> None:
        self.stored += [key for key, _ in batch.messages]


class Conditions:
    """A resolver, or an observer, that only notes what it is told."""

    def __init__(self) -> None:
        self.keys: set[ObjectKey] = set()

    def changed(self, keys: Iterable[ObjectKey]) -> None:
        self.keys |= set(keys)

    async def ready(self) -> None:
        return

    async def observe(
        self, key: ObjectKey, uid: str, data: RoutesResolved, *, cause: object
    ) -> None:
        self.keys.add(key)


class Routers:
    def published(self, revision: int, table_digest: str) -> None:
        """Nobody watches them here."""


@contextlib.asynccontextmanager
async def running(work: Any) -> AsyncIterator[None]:
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


@pytest.fixture
def join() -> Join:
    world = World(route(), server())
    world.observe(pod())
    return world.join


def publisher_of(join: Join, log: Log, membership: Membership, conditions: Conditions) -> Publisher:
    parts: dict[str, Any] = {
        "routes": log,
        "membership": membership,
        "resolver": conditions,
        "routers": Routers(),
    }
    return Publisher(join=join, metrics=TableMetrics(CollectorRegistry()), coalesce_ms=0.0, **parts)


def tell(publisher: Publisher, affected: Affected) -> None:
    publisher.changed(affected.parts, object(), urgent=affected.urgent)  # type: ignore[arg-type]


async def test_an_instance_that_takes_over_looks_at_every_part_and_condition(join: Join) -> None:
    log, membership, conditions = Log(), Membership(), Conditions()
    publisher = publisher_of(join, log, membership, conditions)
    async with running(publisher.run()):
        tell(publisher, join.fold_object(*fact(server("t"))))
        await asyncio.sleep(0)
        assert (log.loads, log.stored, conditions.keys) == (0, [], set())
        membership.take_over()
        everything = {route_key(), server_key(), server_key("t")}
        await eventually(lambda: set(log.stored) == everything)
        assert conditions.keys == everything
        assert log.loads == 1


async def test_an_active_instance_looks_at_what_changed_alone(join: Join) -> None:
    log, conditions = Log(), Conditions()
    publisher = publisher_of(join, log, Membership(is_active=True), conditions)
    async with running(publisher.run()):
        await eventually(lambda: set(log.stored) == {route_key(), server_key()})
        tell(publisher, join.fold_object(*fact(server("t"))))
        await eventually(lambda: server_key("t") in log.stored)
        assert len(log.stored) == 3
        assert log.loads == 1


@pytest.mark.parametrize("is_active", [True, False])
async def test_conditions_are_written_by_the_active_instance(join: Join, is_active: bool) -> None:
    observer: Any = Conditions()
    membership: Any = Membership(is_active=is_active)
    resolver = Resolver(join, observer, membership)
    resolver.changed([route_key(), server_key(), server_key("unknown")])
    async with running(resolver.run()):
        await eventually(lambda: resolver.idle)
    assert observer.keys == ({route_key(), server_key()} if is_active else set())
