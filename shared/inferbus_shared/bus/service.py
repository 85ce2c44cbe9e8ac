"""The life of a service on the bus: connect, check, wire, serve until told to stop, drain.

A background task that ends with an exception ends the process: whoever supervises it starts a fresh
one, and the log says why. SIGTERM and SIGINT let running handlers finish first.
"""

import asyncio
import functools
import logging
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, Generic, TypeVar

from prometheus_client import CollectorRegistry

from inferbus_contracts.api.objects import Reply
from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_contracts.services import Service
from inferbus_contracts.stream_specs import DurableSpec
from inferbus_contracts.topology import topology
from inferbus_shared.bus.bus import Bus
from inferbus_shared.bus.connection import Connection
from inferbus_shared.bus.consume import BusBroker, EventHandler, RequestT
from inferbus_shared.bus.metrics import BusMetrics
from inferbus_shared.bus.provision import read_anchor
from inferbus_shared.bus.readiness import NOT_CONNECTED, missing, require
from inferbus_shared.clock import SystemClock
from inferbus_shared.program import EXIT_BUG, run_program
from inferbus_shared.settings import BusSettings, ServiceSettings, load_settings
from inferbus_shared.telemetry import HealthServer, set_up_logging

log = logging.getLogger("inferbus.service")

SettingsT = TypeVar("SettingsT", bound=ServiceSettings)

STOP_SECONDS = 12.0

NOT_SERVING = {"service": "starting or stopping"}


class Runtime(Generic[SettingsT]):
    """What `serve` of a service is given: its settings, the bus, and places to hang its work."""

    def __init__(
        self, service: Service, settings: SettingsT, bus: Bus, registry: CollectorRegistry
    ) -> None:
        self.service = service
        self.settings = settings
        self.bus = bus
        self.registry = registry
        self._broker = BusBroker(bus, BusMetrics(service, registry))
        self._durables: list[DurableSpec] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._cleanups: list[Callable[[], Awaitable[None]]] = []
        self._needs: list[Callable[[], Mapping[str, str]]] = []
        self._stop = asyncio.Event()
        self._serving = False
        self._failure: BaseException | None = None

    def on_inbox(self, handler: EventHandler, nodes: tuple[str, ...] = ()) -> None:
        """Handle every durable of this service, one handler call at a time per durable."""
        for durable in topology(nodes).durables:
            if durable.service is self.service:
                self._durables.append(durable)
                self._broker.handle_durable(durable, handler)

    def on_request(
        self,
        subject: str,
        request: type[RequestT],
        handler: Callable[[RequestT], Awaitable[Reply]],
    ) -> None:
        """Answer requests on a subject."""
        self._broker.handle_requests(subject, request, handler)

    def background(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        """Run `work` until the service stops; its failure ends the service."""
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def on_stop(self, cleanup: Callable[[], Awaitable[None]]) -> None:
        """Call `cleanup` when the service stops, last registered first."""
        self._cleanups.append(cleanup)

    def requires(self, missing: Callable[[], Mapping[str, str]]) -> None:
        """Be ready only while `missing` names nothing: what is missing, and why."""
        self._needs.append(missing)

    def stop(self) -> None:
        """Begin to stop."""
        self._stop.set()

    async def missing(self) -> Mapping[str, str]:
        """What keeps the service from being ready."""
        needed = {name: why for need in self._needs for name, why in need().items()}
        if not self._serving:
            return {**NOT_SERVING, **needed}
        known = await missing(self.bus.connection, self._durables)
        return {**known, **self._broker.missing, **needed}

    async def wire(self, serve: "Serve[SettingsT]") -> None:
        """Let `serve` register its work, which ends early when the service is to stop."""
        wiring = asyncio.ensure_future(serve(self))
        stopping = asyncio.ensure_future(self._stop.wait())
        try:
            await asyncio.wait((wiring, stopping), return_when=asyncio.FIRST_COMPLETED)
            if wiring.done():
                await wiring
        finally:
            wiring.cancel()
            stopping.cancel()
            await asyncio.gather(wiring, stopping, return_exceptions=True)

    async def run(self) -> None:
        """Serve until stopped; raises what a background task failed with."""
        await require(self.bus.connection, self._durables)
        await self._broker.start()
        self._serving = True
        log.info("serving")
        await self._stop.wait()
        self._serving = False
        log.info("stopping")
        await self._shut_down()
        if self._failure is not None:
            raise self._failure

    async def _shut_down(self) -> None:
        for subscriber in self._broker.subscribers:
            await subscriber.stop()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for cleanup in reversed(self._cleanups):
            await cleanup()

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if task.cancelled():
            return
        error = task.exception()
        if error is not None and self._failure is None:
            log.error("background work failed", extra={"task": task.get_name()})
            self._failure = error
        self._stop.set()


Serve = Callable[[Runtime[SettingsT]], Awaitable[None]]


def run_service(
    service: Service,
    settings: type[SettingsT],
    serve: Serve[SettingsT],
    new_loop: Callable[[SettingsT], asyncio.AbstractEventLoop] | None = None,
) -> int:
    """The `main` of a service: 0 after a clean stop, else what `run_program` says.

    `new_loop` makes another event loop than asyncio's own.
    """
    set_up_logging(service.value)

    def main() -> int:
        loaded = load_settings(settings)
        factory = functools.partial(new_loop, loaded) if new_loop else None
        with asyncio.Runner(loop_factory=factory) as runner:
            return runner.run(_main(service, loaded, serve))

    return run_program(main)


async def _main(service: Service, settings: SettingsT, serve: Serve[SettingsT]) -> int:
    """The health page comes first: a service that waits for the bus must say that it does."""
    connection = Connection(service, load_settings(BusSettings))
    registry = CollectorRegistry()
    runtime: Runtime[SettingsT] | None = None

    async def unready() -> Mapping[str, str]:
        return NOT_CONNECTED if runtime is None else await runtime.missing()

    health = HealthServer(registry, unready)
    await _listen(health, settings)
    try:
        bus = await _reached(connection)
        if bus is None:
            return 0
        runtime = Runtime(service, settings, bus, registry)
        _on_signals(functools.partial(_stop_or_die, runtime))
        await runtime.wire(serve)
        await runtime.run()
    finally:
        await health.stop()
        await connection.close()
    return 0


async def _listen(health: HealthServer, settings: ServiceSettings) -> None:
    try:
        await health.start(settings.http_host, settings.http_port)
    except OSError as error:
        raise ProblemsError(
            Problem(
                code=ErrorCode.PORT_IN_USE,
                message=f"cannot serve metrics and health: {error.strerror or error}",
                field=f"{settings.service.setting_prefix}HTTP_PORT",
                value=settings.http_port,
                remedy="choose another port, or 0 for any free one",
            )
        ) from error
    log.info("health page", extra={"address": f"{settings.http_host}:{health.port}"})


async def _reached(connection: Connection) -> Bus | None:
    """The bus as soon as it is there; None when a signal says to stop before that."""
    opening = asyncio.ensure_future(_open(connection))
    _on_signals(opening.cancel)
    await asyncio.wait([opening])
    return None if opening.cancelled() else await opening


async def _open(connection: Connection) -> Bus:
    await connection.open()
    return Bus(connection, SystemClock(await read_anchor(connection)))


def _on_signals(callback: Callable[[], object]) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, callback)


def _stop_or_die(runtime: Runtime[Any]) -> None:
    """The first signal stops; what hasn't stopped in time is ended."""
    runtime.stop()
    asyncio.get_running_loop().call_later(STOP_SECONDS, _die)


def _die() -> None:
    log.error("not stopped in time", extra={"seconds": STOP_SECONDS})
    sys.stderr.flush()
    os._exit(EXIT_BUG)
