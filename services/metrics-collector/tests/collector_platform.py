"""A real bus with the writers around a collector, and everything it says."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from collector_builders import Scaler, binding, changed, single
from collector_servers import PageServer
from prometheus_client import CollectorRegistry

from inferbus_contracts.base import EventData
from inferbus_contracts.events.metrics import MetricsAssessed, MetricsSampled
from inferbus_contracts.events.spec import SpecChanged
from inferbus_contracts.events.workload import WorkloadObserved
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.services import Service
from inferbus_metrics_collector.main import serve
from inferbus_metrics_collector.settings import MetricsCollectorSettings
from inferbus_shared.bus.bus import Bus
from inferbus_shared.bus.messages import Received
from tests.support.nats import NatsServer
from tests.support.services import running_service

INTERVAL_SECONDS = 0.3


class Platform:
    """The writers around the collector, and everything it has said."""

    def __init__(self, server: NatsServer, specs: Bus, pods: Bus) -> None:
        self._server = server
        self._specs = specs
        self._pods = pods
        self._number = 0
        self.samples: list[Received[EventData]] = []
        self.assessed: list[Received[EventData]] = []

    async def apply(self, resource: Scaler, generation: int = 1, deleted: bool = False) -> None:
        data = changed(resource, generation)
        key = ObjectKey(resource.kind, "default", resource.metadata.name)
        if deleted:
            left = {name: data.object[name] for name in ("apiVersion", "kind", "metadata")}
            data = SpecChanged(uid=data.uid, generation=2, digest="", deleted=True, object=left)
        await self._publish(self._specs, key, data)

    async def observe(self, key: ObjectKey, data: WorkloadObserved, ahead_ms: int = 0) -> None:
        await self._publish(self._pods, key, data, ahead_ms)

    async def _publish(self, bus: Bus, key: ObjectKey, data: EventData, ahead_ms: int = 0) -> None:
        self._number += 1
        time_ms = bus.clock.now_ms() + ahead_ms
        await bus.publish(bus.event(data, key, id=f"fact-{self._number}", time_ms=time_ms))

    def of(self, key: ObjectKey) -> list[MetricsSampled]:
        return [data for _, data in self.samples_of(key)]

    def samples_of(self, key: ObjectKey) -> list[tuple[Received[EventData], MetricsSampled]]:
        found = [(event, event.data) for event in self.samples if event.key == key]
        return [(event, data) for event, data in found if isinstance(data, MetricsSampled)]

    def told_of(self, policy: ObjectKey) -> list[list[str]]:
        """The problems of a policy, each time they were told."""
        found = [event.data for event in self.assessed if event.key == policy]
        return [data.problems for data in found if isinstance(data, MetricsAssessed)]

    def values(self, key: ObjectKey) -> list[float]:
        return [item.value for data in self.of(key) for item in data.targets[0].metrics]

    @contextlib.asynccontextmanager
    async def collector(
        self, instance: str, interval_seconds: float = INTERVAL_SECONDS
    ) -> AsyncIterator[CollectorRegistry]:
        settings = MetricsCollectorSettings(interval_seconds=interval_seconds, timeout_seconds=1.5)
        async with running_service(self._server, serve, settings, instance) as runtime:
            yield runtime.registry


Collect = Callable[..., Awaitable[CollectorRegistry]]


@contextlib.asynccontextmanager
async def platform(server: NatsServer) -> AsyncIterator[tuple[Platform, Collect]]:
    """A bus with its writers, and a way to start collectors that stop with it."""
    async with contextlib.AsyncExitStack() as stack:
        specs = await stack.enter_async_context(server.bus(Service.SPEC_WATCHER))
        pods = await stack.enter_async_context(server.bus(Service.WORKLOAD_RECONCILER))
        reader = await stack.enter_async_context(server.bus(Service.AUTOSCALER))
        world = Platform(server, specs, pods)

        async def listen(bus: Bus, event_type: str, heard: list[Received[EventData]]) -> None:
            async for event in bus.events(bus.follow(event_type)):
                heard.append(event)

        for bus, event_type, heard in (
            (reader, "metrics.sampled", world.samples),
            (specs, "metrics.assessed", world.assessed),
        ):
            listening = asyncio.create_task(listen(bus, event_type, heard))
            stack.callback(listening.cancel)

        async def collect(
            instance: str, interval_seconds: float = INTERVAL_SECONDS
        ) -> CollectorRegistry:
            return await stack.enter_async_context(world.collector(instance, interval_seconds))

        yield world, collect


def scaled(page: PageServer, name: str = "m") -> Scaler:
    endpoint = {"port": page.endpoint.port}
    return binding(f"b-{name}", scalingConfiguration=single(name, metricEndpoint=endpoint))


def told(log: pytest.LogCaptureFixture) -> str:
    return "\n".join(str(getattr(record, "problem", "")) for record in log.records)
