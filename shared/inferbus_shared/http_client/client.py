"""Requests to one server over connections that are kept, so many at a time.

Invariant: a connection is idle here, or serves one request, or is closed; after `close` none is
open. What was sent is sent again only where that can't do it twice.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from inferbus_shared.http_client.answer import Answer
from inferbus_shared.http_client.connection import Connection
from inferbus_shared.http_client.dial import dial
from inferbus_shared.http_client.failures import NoAnswerError, StaleConnectionError
from inferbus_shared.http_client.route import Route

IDLE_SECONDS = 15.0
"""A connection that was idle for longer isn't used again: servers and what stands before them close
it in the end, and a request that meets this is lost."""

_CLOSED = "the client was closed"


class HttpClient:
    """The connections to one server."""

    def __init__(
        self, route: Route, *, max_connections: int, connect_timeout_seconds: float
    ) -> None:
        """`max_connections` bounds those for `fetch`; each stream has one of its own."""
        self._route = route
        self._connect_timeout_seconds = connect_timeout_seconds
        self._slots = asyncio.Semaphore(max_connections)
        self._idle: dict[Connection, float] = {}
        """Kept connections and until when, those used last at the end."""
        self._open: dict[Connection, asyncio.Future[None]] = {}
        """What ends when a connection is closed."""
        self._dialling: set[asyncio.Task[Connection]] = set()
        self._sweeper: asyncio.TimerHandle | None = None
        self._is_closed = False

    async def fetch(
        self, request: bytes, silence_seconds: float, *, is_idempotent: bool
    ) -> tuple[Answer, bytes]:
        """Send a request; its answer and the whole body. Raises `NoAnswerError`.

        Where a kept connection is closed before anything of the answer came, an idempotent request
        is sent again, once and over a new connection: whether the server did it isn't known.
        (RFC 9110, 9.2.2)
        """
        async with self._slots:
            kept = self._take()
            if kept is None:
                return await self._ask(await self._connect(), request, silence_seconds)
            try:
                return await self._ask(kept, request, silence_seconds)
            except StaleConnectionError:
                if not is_idempotent:
                    raise
            return await self._ask(await self._connect(), request, silence_seconds)

    async def _ask(
        self, connection: Connection, request: bytes, silence_seconds: float
    ) -> tuple[Answer, bytes]:
        try:
            answer = connection.ask(request, silence_seconds)
            body = await answer.whole()
        except BaseException:
            connection.close()
            raise
        self._keep(connection)
        return answer, body

    @asynccontextmanager
    async def stream(self, request: bytes, silence_seconds: float) -> AsyncGenerator[Answer]:
        """Send a request over a connection of its own, which ends with it; its answer's head is
        there. Raises `NoAnswerError`."""
        connection = await self._connect()
        try:
            answer = connection.ask(request, silence_seconds, streamed=True)
            await answer.head()
            yield answer
        finally:
            connection.close()

    async def close(self) -> None:
        """End everything; what is under way fails. No transport is open afterwards."""
        self._is_closed = True
        if self._sweeper is not None:
            self._sweeper.cancel()
        dialling = list(self._dialling)
        for task in dialling:
            task.cancel()
        if dialling:
            await asyncio.wait(dialling)
        lost = list(self._open.values())
        for connection in list(self._open):
            connection.close(_CLOSED)
        if lost:
            await asyncio.wait(lost)

    # Connections.

    def _take(self) -> Connection | None:
        """The kept connection that was used last."""
        if not self._idle:
            return None
        now = asyncio.get_running_loop().time()
        while self._idle:
            connection, until = self._idle.popitem()
            if until > now and connection.is_idle:
                return connection
            connection.close()
        return None

    def _keep(self, connection: Connection) -> None:
        if not connection.is_idle:
            return
        loop = asyncio.get_running_loop()
        self._idle[connection] = loop.time() + IDLE_SECONDS
        if self._sweeper is None:
            self._sweeper = loop.call_later(IDLE_SECONDS, self._sweep)

    def _sweep(self) -> None:
        """Close what has been idle for too long, and look again while there is anything."""
        loop = asyncio.get_running_loop()
        now = loop.time()
        for connection in [one for one, until in self._idle.items() if until <= now]:
            del self._idle[connection]
            connection.close()
        self._sweeper = loop.call_later(IDLE_SECONDS, self._sweep) if self._idle else None

    async def _connect(self) -> Connection:
        """A new connection. A task opens it, so that `close` can end that too."""
        if self._is_closed:
            raise NoAnswerError(_CLOSED)
        task = asyncio.create_task(self._dial())
        self._dialling.add(task)
        task.add_done_callback(self._dialled)
        try:
            await asyncio.wait((task,))
        except asyncio.CancelledError:
            if not task.cancel() and task.exception() is None:
                self._keep(task.result())
            raise
        if task.cancelled():
            raise NoAnswerError(_CLOSED)
        return task.result()

    def _dialled(self, task: asyncio.Task[Connection]) -> None:
        self._dialling.discard(task)
        if not task.cancelled():
            task.exception()  # whoever asked may be gone

    async def _dial(self) -> Connection:
        connection = Connection(self._lost)
        await dial(self._route, connection, self._connect_timeout_seconds)
        if not connection.is_idle:
            raise NoAnswerError(f"{self._route.entry}: the server closed the connection")
        self._open[connection] = asyncio.get_running_loop().create_future()
        return connection

    def _lost(self, connection: Connection) -> None:
        self._idle.pop(connection, None)
        closed = self._open.pop(connection, None)
        if closed is not None:
            closed.set_result(None)
