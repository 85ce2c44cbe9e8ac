"""What operators have of a router beside its metrics: configuration file, debug endpoint, traces.

Invariant: what isn't asked for doesn't exist, and costs a request one look at None.
"""

import socket
from collections.abc import Iterator

from inferbus_router.configuration import Configuration
from inferbus_router.debug import DebugPages, is_loopback
from inferbus_router.endpoint import ConnectionSettings
from inferbus_router.listener import Listener
from inferbus_router.settings import RouterSettings
from inferbus_router.state import RouterState
from inferbus_router.tracing import Collector, Tracer


class Operations:
    """Of one router."""

    def __init__(
        self,
        settings: RouterSettings,
        state: RouterState,
        connections: ConnectionSettings,
        name: str,
    ) -> None:
        """`name` tells the router from others. Raises `ProblemsError` where a setting or the
        configuration file can't be used.
        """
        self.configuration = Configuration(settings, state)
        self.debug_pages = DebugPages(state, self.configuration.scheduling)
        self.debug: Listener | None = None
        """For operators on this machine; None where it has no port of its own."""
        self._settings = settings
        self._tracer: Tracer | None = None
        if settings.tracing is not None:
            collector = Collector(settings.tracing, connections)
            self._tracer = Tracer(collector, name, settings.tracing_sample_ratio)
            state.tracer = self._tracer
            state.ledger.log = self._tracer.watching(state.ledger.log)

    @property
    def debug_beside_metrics(self) -> DebugPages | None:
        """The debug endpoint, where it goes with the metrics: they are for this machine alone."""
        is_apart = self._settings.debug_port is not None
        return None if is_apart or not is_loopback(self._settings.http_host) else self.debug_pages

    async def start(self, debug_socket: socket.socket | None) -> None:
        """Follow the file, send traces, and answer on a debug socket where there is one."""
        self.configuration.start()
        if self._tracer is not None:
            self._tracer.start(self._settings.tracing_interval_seconds)
        if debug_socket is not None:
            self.debug = Listener(self.debug_pages, self._settings)
            await self.debug.open(debug_socket)

    async def stop(self) -> None:
        """Send the last traces, and let go of everything."""
        await self.configuration.stop()
        if self._tracer is not None:
            await self._tracer.stop()
        if self.debug is not None:
            await self.debug.drain(0, 0)

    def gauges(self) -> Iterator[tuple[str, str, float]]:
        """(name, help, value) of how it goes with all this."""
        yield from self.configuration.gauges()
        if self._tracer is not None:
            yield from self._tracer.gauges()
