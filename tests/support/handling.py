"""A handler of a service's inbox, and events for the autoscaler's."""

import asyncio
import contextlib
import inspect
from collections.abc import AsyncIterator, Callable

from nats.aio.msg import Msg
from prometheus_client import CollectorRegistry

from inferbus_contracts.base import EventData
from inferbus_contracts.events.metrics import MetricsSampled
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.services import Service
from inferbus_shared.bus.bus import Bus
from inferbus_shared.bus.messages import Received
from inferbus_shared.bus.service import Runtime
from inferbus_shared.settings import ServiceSettings


class Settings(ServiceSettings):
    """No settings of its own."""

    service = Service.AUTOSCALER


@contextlib.asynccontextmanager
async def consuming(
    bus: Bus, handler: Callable[[Received[EventData]], object]
) -> AsyncIterator[Runtime[Settings]]:
    """The inbox of the bus's service is handled until the block ends, by what may be async."""

    async def handle(event: Received[EventData], _: Msg) -> None:
        handled = handler(event)
        if inspect.isawaitable(handled):
            await handled

    runtime = Runtime(bus.service, Settings(), bus, CollectorRegistry())
    runtime.on_inbox(handle)
    running = asyncio.create_task(runtime.run())
    try:
        yield runtime
    finally:
        runtime.stop()
        await running


def target(number: int) -> ObjectKey:
    """The n-th key."""
    return ObjectKey("ModelServing", "default", f"m{number}")


async def publish_samples(bus: Bus, count: int, keys: int = 1, first: int = 0) -> None:
    """Samples numbered from `first` on, of as many keys in turn."""
    for number in range(first, first + count):
        data = MetricsSampled(
            policy="AutoscalingPolicy/default/p", taken_at_ms=number, window_ms=0, targets=[]
        )
        await bus.publish(bus.event(data, target(number % keys), id=f"sample-{number}"))


def sample_number(event: Received[EventData]) -> int:
    """Which sample an event is."""
    assert isinstance(event.data, MetricsSampled)
    return event.data.taken_at_ms
