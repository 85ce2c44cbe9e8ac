"""A listening socket and the connections it accepted, from opening to draining.

Invariant: once draining has begun no connection is accepted, and none that was accepted is closed
while its client may still be served, until the grace period is over.
"""

import asyncio
import errno
import socket
import ssl

from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_router.request import RequestIds
from inferbus_router.server_protocol import RequestHandler, ServerProtocol
from inferbus_router.settings import RouterSettings
from inferbus_router.timekeeper import Deadlines, Timekeeper

_LAST_WORDS_SECONDS = 1.0
"""For the event loop to tell connections that they are closed."""


class Listener:
    """Serves one handler on one socket; the `Surroundings` of its connections."""

    def __init__(self, handler: RequestHandler, settings: RouterSettings) -> None:
        self.handler = handler
        self.request_ids = RequestIds()
        self.draining = False
        self.closes_idle = False
        self.max_head_bytes = settings.max_head_bytes
        self.max_body_bytes = settings.max_body_bytes
        self._backlog = settings.backlog
        self._handshake_seconds = settings.head_timeout_seconds
        self._closing_seconds = settings.closing_timeout_seconds
        self._loop = asyncio.get_running_loop()
        self._keeper = Timekeeper(self.now_ms)
        self.head_deadlines = self._deadlines(settings.head_timeout_seconds)
        self.body_deadlines = self._deadlines(settings.body_timeout_seconds)
        self.idle_deadlines = self._keeper.deadlines(
            round(settings.keepalive_timeout_seconds * 1000), ServerProtocol.idle_for_long
        )
        self.closing_deadlines = self._deadlines(settings.closing_timeout_seconds)
        self._server: asyncio.Server | None = None
        self._connections: set[ServerProtocol] = set()
        self._all_closed = asyncio.Event()

    def _deadlines(self, seconds: float) -> Deadlines[ServerProtocol]:
        return self._keeper.deadlines(round(seconds * 1000), ServerProtocol.deadline_passed)

    def now_ms(self) -> int:
        """Milliseconds by the event loop's clock."""
        return int(self._loop.time() * 1000)

    def opened(self, connection: ServerProtocol) -> None:
        """A client connected."""
        self._connections.add(connection)
        if self.closes_idle:
            connection.close()

    def closed(self, connection: ServerProtocol) -> None:
        """A connection is gone."""
        self._connections.discard(connection)
        if not self._connections:
            self._all_closed.set()

    @property
    def connections(self) -> int:
        """How many are open."""
        return len(self._connections)

    @property
    def port(self) -> int:
        """The port listened on."""
        assert self._server
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def open(self, listening: socket.socket, tls: ssl.SSLContext | None = None) -> None:
        """Accept connections, over TLS where a context is given; the socket is closed with the
        listener.
        """
        self._server = await self._loop.create_server(
            lambda: ServerProtocol(self),
            sock=listening,
            backlog=self._backlog,
            ssl=tls,
            ssl_handshake_timeout=self._handshake_seconds if tls else None,
            ssl_shutdown_timeout=self._closing_seconds if tls else None,
        )

    async def drain(self, linger_seconds: float, grace_seconds: float) -> None:
        """Stop accepting, let running requests finish, and close; at the latest after the grace.

        A connection without a request is kept for a moment, in case one is on its way: what arrives
        is served, and told that it is the last.
        """
        self.draining = True
        if self._server is not None:
            self._server.close()
        deadline = self._loop.time() + grace_seconds
        await self._wait_closed(min(linger_seconds, grace_seconds))
        self.closes_idle = True
        for connection in list(self._connections):
            if connection.is_idle:
                connection.close()
        await self._wait_closed(deadline - self._loop.time())
        for connection in list(self._connections):
            connection.drop()
        await self._wait_closed(_LAST_WORDS_SECONDS)
        self._keeper.stop()

    async def _wait_closed(self, seconds: float) -> None:
        self._all_closed.clear()
        if not self._connections or seconds <= 0:
            return
        try:
            async with asyncio.timeout(seconds):
                await self._all_closed.wait()
        except TimeoutError:
            return


def inherited_socket(descriptor: int) -> socket.socket:
    """The listening socket behind a descriptor; raises `ProblemsError` where there is none."""
    try:
        return socket.socket(fileno=descriptor)
    except OSError as error:
        raise ProblemsError(
            Problem(
                code=ErrorCode.BAD_SETTING,
                message=f"the descriptor is no socket: {error.strerror}",
                field="INFERBUS_ROUTER_LISTEN_FD",
                value=descriptor,
                remedy="pass a listening socket under that number, or unset the variable",
            )
        ) from None


def bound_socket(host: str, port: int, setting: str) -> socket.socket:
    """A socket bound to an address, which other workers may bind too (SO_REUSEPORT).

    Raises `ProblemsError` naming the setting: PORT_IN_USE, or BAD_SETTING for another reason.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except OSError as error:
        raise ProblemsError(_not_bound(setting, f"{host}:{port}", str(error))) from None
    bound = socket.socket(family, kind, protocol)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        bound.bind(address)
        bound.listen()
    except OSError as error:
        bound.close()
        if error.errno == errno.EADDRINUSE:
            raise ProblemsError(_in_use(setting, f"{host}:{port}")) from None
        raise ProblemsError(_not_bound(setting, f"{host}:{port}", str(error))) from None
    return bound


def _in_use(setting: str, address: str) -> Problem:
    return Problem(
        code=ErrorCode.PORT_IN_USE,
        message="another program listens on this address already",
        field=setting,
        value=address,
        remedy=f"stop that program, or set {setting} to a free port",
    )


def _not_bound(setting: str, address: str, reason: str) -> Problem:
    return Problem(
        code=ErrorCode.BAD_SETTING,
        message=f"the router can't listen there: {reason}",
        field=setting,
        value=address,
        remedy="set the host to an address of this machine, and the port to one it may use",
    )
