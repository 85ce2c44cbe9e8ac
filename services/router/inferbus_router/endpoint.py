"""One endpoint as requests meet it: its load, and the connections to it.

There are as many connections as there are requests, and no upper bound: an engine that is busy
queues requests itself, and a bound here would hide that (routing spec, defect 17). The one used
last is used first, so that surplus ones grow old. Invariant: a connection is idle here, or serves
one request, or is closed.
"""

import asyncio
import errno
from dataclasses import dataclass
from typing import Protocol

from inferbus_contracts.events.route import EndpointEntry
from inferbus_router.policy_load import EndpointLoad
from inferbus_router.timekeeper import Deadlines, Timekeeper
from inferbus_router.transport import Transport
from inferbus_router.upstream_protocol import UpstreamProtocol
from inferbus_router.upstream_tls import UpstreamTls

_TOO_MANY_OPEN = (errno.EMFILE, errno.ENFILE)
_LOOK_AGAIN_SECONDS = 0.05


class ConnectionSeeker(Protocol):
    """Who waits for a connection."""

    @property
    def still_wants_connection(self) -> bool:
        """False once its client has left."""
        ...

    def connected(self, connection: UpstreamProtocol) -> None:
        """Here it is."""
        ...

    def connect_failed(self, detail: str) -> None:
        """There is none."""
        ...


@dataclass(frozen=True, slots=True)
class ConnectionSettings:
    """What the connections of a router share."""

    connect_timeout_seconds: float
    idle_timeout_ms: int
    """An idle connection is closed after that long."""
    keeper: Timekeeper
    """Counts it."""
    tls: UpstreamTls
    """For endpoints that speak https."""


class Endpoint(EndpointLoad):
    """One address that serves a model."""

    def __init__(
        self, entry: EndpointEntry, transport: Transport, settings: ConnectionSettings
    ) -> None:
        super().__init__(entry.pod)
        address, port = entry.address, entry.port
        self.host = (f"[{address}]:{port}" if ":" in address else f"{address}:{port}").encode()
        """For the Host header."""
        self.name = f"{transport.protocol}://{self.host.decode()}"
        self._address = address
        self._port = port
        self._settings = settings
        is_https = transport.protocol == "https"
        self._tls = settings.tls.peer(address, transport.trust) if is_https else None
        self._now_ms = settings.keeper.now_ms
        self.idle: Deadlines[UpstreamProtocol] = settings.keeper.deadlines(
            settings.idle_timeout_ms, UpstreamProtocol.close
        )
        """Kept connections."""
        self._connecting: set[asyncio.Task[None]] = set()
        self._retired = False

    def connect(self, seeker: ConnectionSeeker) -> None:
        """Open a connection for a request."""
        task = asyncio.get_running_loop().create_task(self._connect(seeker))
        self._connecting.add(task)
        task.add_done_callback(self._connecting.discard)

    async def _connect(self, seeker: ConnectionSeeker) -> None:
        try:
            connection = await self._opened(seeker)
        except (OSError, TimeoutError) as error:
            seconds = self._settings.connect_timeout_seconds
            reason = str(error) or f"no connection within {seconds:g} seconds"
            if seeker.still_wants_connection:
                seeker.connect_failed(reason)
            return
        if seeker.still_wants_connection:
            seeker.connected(connection)
        else:
            self.release(connection)

    async def _opened(self, seeker: ConnectionSeeker) -> UpstreamProtocol:
        """A connection; a router that may open no more waits until it has closed one, because the
        endpoint isn't to blame, and every other would be as far away.
        """
        while True:
            try:
                async with asyncio.timeout(self._settings.connect_timeout_seconds):
                    return await self._open()
            except OSError as error:
                if error.errno not in _TOO_MANY_OPEN or not seeker.still_wants_connection:
                    raise
            await asyncio.sleep(_LOOK_AGAIN_SECONDS)

    async def _open(self) -> UpstreamProtocol:
        loop, tls = asyncio.get_running_loop(), self._tls
        _, connection = await loop.create_connection(
            lambda: UpstreamProtocol(self, tls),
            self._address,
            self._port,
            ssl=tls.context if tls else None,
            server_hostname=tls.server_name if tls else None,
        )
        return connection

    def release(self, connection: UpstreamProtocol) -> None:
        """Keep a connection for the next request."""
        if self._retired:
            connection.close()
        else:
            self.idle.start(connection, self._now_ms())

    def closed(self, connection: UpstreamProtocol) -> None:
        """A connection is gone, whoever closed it."""
        self.idle.stop(connection)

    @property
    def is_retired(self) -> bool:
        """No table names it any more."""
        return self._retired

    def retire(self) -> None:
        """The endpoint is gone: what runs may end, nothing is kept."""
        self._retired = True
        for connection in self.idle.items():
            connection.close()
        self._settings.keeper.forget(self.idle)
