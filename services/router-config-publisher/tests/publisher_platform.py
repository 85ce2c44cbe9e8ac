"""A bus with the writers around publishers, a router's eyes on it, and publishers to start."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import Any

from prometheus_client import CollectorRegistry
from publisher_builders import Document, fact, server, server_key, workload, workload_key

from inferbus_contracts.base import EventData
from inferbus_contracts.canonical import digest
from inferbus_contracts.events.route import RoutePublished, RoutesResolved
from inferbus_contracts.events.workload import PodFact, WorkloadObserved
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.services import Service
from inferbus_router_config_publisher.main import serve
from inferbus_router_config_publisher.settings import RouterConfigPublisherSettings
from inferbus_shared.bus.bus import Bus
from inferbus_shared.bus.follow import Start
from tests.support.eventually import eventually
from tests.support.nats import NatsServer
from tests.support.services import running_service


@dataclass
class Router:
    """Everything that was published, as a router that was there from the start sees it."""

    messages: list[tuple[ObjectKey, RoutePublished]] = field(default_factory=list)

    @property
    def held(self) -> dict[ObjectKey, RoutePublished]:
        last = dict(self.messages)
        return {key: one for key, one in last.items() if not one.deleted}

    @property
    def is_complete(self) -> bool:
        parts = sorted([str(key), one.digest] for key, one in self.held.items())
        return bool(self.messages) and digest(parts) == self.messages[-1][1].table_digest

    def addresses(self, key: ObjectKey) -> list[str]:
        """Of the ready endpoints of a server; empty while it isn't there."""
        message = self.held.get(key)
        endpoints = message.server.endpoints if message and message.server else []
        return [one.address for one in endpoints if one.ready and not one.draining]


class Platform:
    """The writers, and what came of what they wrote."""

    def __init__(self, nats: NatsServer, specs: Bus, pods: Bus) -> None:
        self._nats = nats
        self._specs = specs
        self._pods = pods
        self._number = 0
        self.router = Router()
        self.resolved: list[tuple[ObjectKey, RoutesResolved]] = []

    async def apply(self, *documents: Document, deleted: bool = False) -> None:
        for doc in documents:
            key, data = fact(doc, deleted=deleted)
            await self.publish(key, data)

    async def observe(self, *pods: PodFact, name: str = "w") -> None:
        await self.publish(workload_key(name), workload(*pods))

    async def publish(self, key: ObjectKey, data: EventData) -> None:
        """By the service that writes such facts."""
        self._number += 1
        bus = self._pods if isinstance(data, WorkloadObserved) else self._specs
        await bus.publish(bus.event(data, key, id=f"fact-{self._number}"))

    def conditions(self, key: ObjectKey) -> dict[str, str]:
        """Reasons by type, as last told."""
        last = dict(self.resolved).get(key)
        return {one.type: one.reason for one in last.conditions} if last else {}

    async def fence(self, name: str = "fence") -> None:
        """Wait until everything that was to be published before now has been.

        A server that selects nothing comes last: its part, and what is said about it.
        """
        await self.apply(server(name, {"fence": name}))
        await eventually(lambda: server_key(name) in self.router.held)
        await eventually(lambda: self.conditions(server_key(name)) != {})
        await eventually(lambda: self.router.is_complete)

    @contextlib.asynccontextmanager
    async def publisher(
        self, instance: str = "one", **settings: float
    ) -> AsyncIterator[CollectorRegistry]:
        chosen = RouterConfigPublisherSettings(**settings)  # type: ignore[arg-type]
        async with running_service(self._nats, serve, chosen, instance) as runtime:
            yield runtime.registry


@contextlib.asynccontextmanager
async def platform(nats: NatsServer) -> AsyncIterator[Platform]:
    async with (
        nats.bus(Service.SPEC_WATCHER) as specs,
        nats.bus(Service.WORKLOAD_RECONCILER) as pods,
        nats.bus(Service.ROUTER) as routers,
    ):
        world = Platform(nats, specs, pods)
        with (
            listening(routers, "route.published", world.router.messages),
            listening(specs, "routes.resolved", world.resolved),
        ):
            yield world


@contextlib.contextmanager
def listening(bus: Bus, event_type: str, found: list[Any]) -> Iterator[None]:
    async def listen() -> None:
        async for event in bus.events(bus.follow(event_type, Start.everything())):
            found.append((event.key, event.data))

    task = asyncio.create_task(listen())
    try:
        yield
    finally:
        task.cancel()


def value(registry: CollectorRegistry, name: str, **labels: str) -> float:
    found = registry.get_sample_value(f"inferbus_router_config_publisher_{name}", labels)
    assert found is not None, name
    return found
