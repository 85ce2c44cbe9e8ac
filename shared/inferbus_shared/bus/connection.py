"""The connection to NATS, with the client's dangerous defaults closed.

It reconnects for ever (the default of sixty attempts ends in a process that spins without a
working loop), replies arrive in an inbox that other users cannot listen to, and whoever holds a
request that the server forgot with the connection can ask to be told of every reconnect.
"""

import asyncio
import contextlib
import json
import logging
from collections.abc import Callable
from typing import Any

import nats.errors
from nats.aio.client import Client
from nats.aio.msg import Msg

from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_contracts.permissions import inbox_prefix
from inferbus_contracts.services import Service
from inferbus_shared.bus.replies import ReplyBox
from inferbus_shared.settings import BusSettings

log = logging.getLogger("inferbus.bus")

RECONNECT_WAIT_SECONDS = 0.2
CONNECT_ATTEMPT_SECONDS = 2
PING_INTERVAL_SECONDS = 10
CLOSE_SECONDS = 5.0


Headers = dict[str, Any] | None


class Connection:
    """One client connection of one service instance."""

    def __init__(self, service: Service, settings: BusSettings) -> None:
        self.service = service
        self.settings = settings
        self.client = Client()
        self._replies = ReplyBox(self.client)
        self._on_reconnect: list[Callable[[], object]] = []
        self._closing = False
        self._refusal: asyncio.Future[Exception] | None = None

    @property
    def connected(self) -> bool:
        """Whether the server is reachable right now."""
        return self.client.is_connected

    def on_reconnect(self, callback: Callable[[], object]) -> Callable[[], None]:
        """Call back after every reconnect; returns a function that stops it."""
        self._on_reconnect.append(callback)
        return lambda: self._on_reconnect.remove(callback)

    async def open(self) -> None:
        """Connect, waiting for the server as long as it takes.

        Raises `ProblemsError` when the server refuses the credentials.
        """
        user, password = self._credentials()
        connecting = asyncio.ensure_future(self._connect(user, password))
        self._refusal = asyncio.get_running_loop().create_future()
        try:
            await _first_of(connecting, self._refusal)
            if self._refusal.done():
                raise ProblemsError(self._refused(self._refusal.result()))
            await connecting
            await self._replies.open()
        except (nats.errors.Error, ValueError) as error:
            raise ProblemsError(self._refused(error)) from error
        finally:
            connecting.cancel()
            self._refusal = None

    async def _connect(self, user: str | None, password: str | None) -> None:
        await self.client.connect(
            self.settings.nats_url,
            name=f"{self.service.value}/{self.settings.instance}",
            user=user,
            password=password,
            inbox_prefix=inbox_prefix(self.service).encode(),
            max_reconnect_attempts=-1,
            reconnect_time_wait=RECONNECT_WAIT_SECONDS,  # type: ignore[arg-type]
            connect_timeout=CONNECT_ATTEMPT_SECONDS,
            ping_interval=PING_INTERVAL_SECONDS,
            error_cb=self._failed,
            disconnected_cb=self._disconnected,
            reconnected_cb=self._reconnected,
        )

    async def request(
        self, subject: str, body: bytes = b"", *, timeout: float, headers: Headers = None
    ) -> Msg:
        """One request and its reply.

        Raises `LostRequestError` as soon as a reconnect shows that the reply can't come any more,
        and what nats-py raises otherwise (`TimeoutError`, `NoRespondersError`, …).
        """
        return await self._replies.ask(subject, body, timeout, headers)

    async def close(self) -> None:
        """Flush what is pending and disconnect; a server that is gone doesn't hold it up."""
        self._closing = True
        with contextlib.suppress(nats.errors.Error, OSError, TimeoutError):
            async with asyncio.timeout(CLOSE_SECONDS):
                if self.client.is_connected:
                    await self.client.drain()
        with contextlib.suppress(OSError):  # the end of a connection that was cut is its end too
            await self.client.close()

    def _credentials(self) -> tuple[str | None, str | None]:
        path = self.settings.nats_credentials
        if path is None:
            return None, None
        try:
            users = json.loads(path.read_text())
            return self.service.value, users[self.service.value]
        except (OSError, ValueError, KeyError) as error:
            raise ProblemsError(
                Problem(
                    code=ErrorCode.BAD_SETTING,
                    message=f"no credentials for user {self.service.value}: {error}",
                    file=str(path),
                    field="INFERBUS_NATS_CREDENTIALS",
                    remedy="name a JSON file that maps this service's name to its password",
                )
            ) from error

    def _refused(self, error: Exception) -> Problem:
        return Problem(
            code=ErrorCode.BUS_REFUSED,
            message=f"the NATS server refused {self.service.value}: {error}",
            field="INFERBUS_NATS_URL",
            value=self.settings.nats_url,
            remedy="check the address and the credentials file",
        )

    async def _failed(self, error: Exception) -> None:
        if self._refusal and "authorization" in str(error).lower():
            self._refusal.set_result(error)
            return
        log.warning("nats reports an error", extra={"error": str(error) or type(error).__name__})

    async def _disconnected(self) -> None:
        if not self._closing:
            log.warning("disconnected from the bus")

    async def _reconnected(self) -> None:
        log.info("connected to the bus again")
        self._replies.reconnected()
        for callback in tuple(self._on_reconnect):
            callback()


async def _first_of(*futures: asyncio.Future[Any]) -> None:
    await asyncio.wait(futures, return_when=asyncio.FIRST_COMPLETED)
