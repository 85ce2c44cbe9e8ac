"""The ports of Gateways' listeners, opened and closed as the table says (routing spec 2.7).

Invariant: the routers' own port isn't touched; a port that can't be had is told and takes nothing
else with it; a port that is closed finishes what runs.
"""

import asyncio
import logging
from collections.abc import Coroutine

from inferbus_contracts.errors import ProblemsError
from inferbus_router.listener import Listener, bound_socket
from inferbus_router.server_protocol import RequestHandler
from inferbus_router.settings import RouterSettings

log = logging.getLogger("inferbus.router")


class GatewayPorts:
    """Listeners beside the routers' own."""

    def __init__(self, handler: RequestHandler, settings: RouterSettings, own_port: int) -> None:
        """`own_port` is where clients come without a Gateway."""
        self._handler = handler
        self._settings = settings
        self._own_port = own_port
        self._wanted: frozenset[int] = frozenset()
        self._open: dict[int, Listener] = {}
        self._turn = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def ports(self) -> frozenset[int]:
        """Those that are open."""
        return frozenset(self._open)

    def follow(self, ports: frozenset[int]) -> None:
        """Be open on these from now on, as soon as it can be."""
        self._wanted = ports
        self._do(self._settle())

    async def stop(self) -> None:
        """Close all; takes at most the grace period."""
        self._wanted = frozenset()
        await self._settle()
        await asyncio.gather(*self._tasks)

    async def _settle(self) -> None:
        async with self._turn:
            wanted = self._wanted - {self._own_port}
            for port in sorted(self._open.keys() - wanted):
                self._do(self._close(self._open.pop(port)))
            for port in sorted(wanted - self._open.keys()):
                await self._listen(port)

    async def _listen(self, port: int) -> None:
        try:
            listening = bound_socket(self._settings.host, port, "spec.listeners of a Gateway")
        except ProblemsError as error:
            log.warning("a Gateway's port isn't served", extra={"problem": str(error)})
            return
        listener = self._open[port] = Listener(self._handler, self._settings)
        await listener.open(listening)

    async def _close(self, listener: Listener) -> None:
        settings = self._settings
        await listener.drain(settings.drain_linger_seconds, settings.grace_seconds)

    def _do(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
