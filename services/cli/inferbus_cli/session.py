"""A connection of the command line to the platform's bus, with a deadline.

Invariant: a platform that doesn't run is told within seconds; no command waits for it to appear.
"""

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from inferbus_cli.full_disk import with_cause
from inferbus_cli.platform.directory import PlatformDirectory
from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_contracts.services import Service
from inferbus_shared.bus.bus import Bus
from inferbus_shared.bus.connection import Connection
from inferbus_shared.bus.provision import read_anchor
from inferbus_shared.clock import SystemClock
from inferbus_shared.objects.client import ObjectClient
from inferbus_shared.settings import BusSettings

CONNECT_SECONDS = 2.0

MANAGER = "cli"
"""The field manager of what is applied from here."""

ResultT = TypeVar("ResultT")


@dataclass(frozen=True)
class Session:
    """What a command has while it is connected."""

    directory: PlatformDirectory
    bus: Bus

    @property
    def objects(self) -> ObjectClient:
        """The object API."""
        return ObjectClient(self.bus, MANAGER)

    @property
    def now_ms(self) -> int:
        """Virtual time."""
        return self.bus.clock.now_ms()


def on_bus(directory: PlatformDirectory, work: Callable[[Session], Awaitable[ResultT]]) -> ResultT:
    """Run `work` with a session and return its result.

    Raises `ProblemsError` (NOT_RUNNING) when there is no platform or it doesn't answer.
    """
    logging.getLogger("inferbus").setLevel(logging.CRITICAL)  # problems are told as such
    try:
        return asyncio.run(_connected(directory, work))
    except ProblemsError as error:
        elsewhere = "INFERBUS_NATS_URL" in os.environ
        raise (error if elsewhere else with_cause(error, directory.root)) from None


async def _connected(
    directory: PlatformDirectory, work: Callable[[Session], Awaitable[ResultT]]
) -> ResultT:
    settings = directory.bus_settings(Service.CLI, f"cli-{os.getpid()}")
    connection = await connect(Service.CLI, settings, str(directory.root))
    try:
        bus = Bus(connection, SystemClock(await read_anchor(connection)))
        return await work(Session(directory, bus))
    finally:
        await connection.close()


async def connect(service: Service, settings: BusSettings, place: str) -> Connection:
    """An open connection; raises `ProblemsError` when the server isn't there or refuses."""
    connection = Connection(service, settings)
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            await connection.open()
    except TimeoutError:
        await connection.close()
        raise ProblemsError(
            Problem(
                code=ErrorCode.NOT_RUNNING,
                message=f"no NATS server answers at {settings.nats_url}",
                file=place,
                field="INFERBUS_NATS_URL" if "INFERBUS_NATS_URL" in os.environ else None,
                value=settings.nats_url,
                remedy="start the platform with `inferbus up`, or name its folder with --dir",
            )
        ) from None
    except BaseException:
        await connection.close()
        raise
    return connection
