"""A service in the test's own process, on a real bus."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TypeVar

from prometheus_client import CollectorRegistry

from inferbus_shared.bus.service import Runtime
from inferbus_shared.settings import ServiceSettings
from tests.support.nats import NatsServer

SettingsT = TypeVar("SettingsT", bound=ServiceSettings)


@contextlib.asynccontextmanager
async def running_service(
    server: NatsServer,
    serve: Callable[[Runtime[SettingsT]], Awaitable[None]],
    settings: SettingsT,
    instance: str = "test",
) -> AsyncIterator[Runtime[SettingsT]]:
    """One instance of the service that the settings belong to, until the block ends."""
    async with server.bus(settings.service, instance) as bus:
        runtime = Runtime(settings.service, settings, bus, CollectorRegistry())
        await serve(runtime)
        running = asyncio.create_task(runtime.run())
        try:
            yield runtime
        finally:
            runtime.stop()
            await running
