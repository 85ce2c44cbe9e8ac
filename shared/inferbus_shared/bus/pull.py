"""Long polls of one pull consumer.

One request for the next messages stands at the server at any time; heartbeats prove that it still
does. The request is put again when it expires, after a reconnect (the server forgot it with the
connection) and when heartbeats stay away. An ordered consumer, whose messages nobody acknowledges,
is given up instead: what was on its way then is lost to it. Nothing here ever spins: every retry
waits.
"""

import asyncio
import json
import logging
from collections.abc import Callable
from contextlib import suppress

from nats.aio.msg import Msg
from nats.aio.subscription import Subscription

from inferbus_shared.bus.connection import Connection

log = logging.getLogger("inferbus.bus")

EXPIRES_SECONDS = 60.0
HEARTBEAT_SECONDS = 10.0
SILENT_HEARTBEATS = 2.5
"""After that many without a sign the request is taken for lost."""
LAST_LOOK_SECONDS = 0.25
RETRY_SECONDS = 0.5

_HEARTBEAT, _NO_CONSUMER, _TIMEOUT, _CONFLICT, _NO_RESPONDER = "100", "404", "408", "409", "503"


class ConsumerGoneError(Exception):
    """The consumer doesn't exist (any more)."""


class LongPoll:
    """The messages of one consumer, in order, each handed out once per delivery."""

    def __init__(
        self,
        connection: Connection,
        stream: str,
        consumer: str,
        batch: int = 1,
        *,
        ordered: bool = False,
        heartbeat_seconds: float | None = None,
    ) -> None:
        """`ordered` for a consumer that is made anew rather than asked again."""
        self._ordered = ordered
        self._heartbeat_seconds = heartbeat_seconds or HEARTBEAT_SECONDS
        self._connection = connection
        self._client = connection.client
        self._subject = f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{consumer}"
        self._batch = batch
        self._arrived: asyncio.Queue[Msg | None] = asyncio.Queue()
        self._silence: asyncio.TimerHandle | None = None
        self._outstanding = 0
        self._inbox = ""
        self._subscription: Subscription | None = None
        self._forget_reconnects = connection.on_reconnect(self._wake)

    async def next(self) -> Msg:
        """The next message, waiting for it as long as it takes.

        Raises `ConsumerGoneError` when the server says that there is no such consumer, and for an
        ordered one also when messages may have been lost on their way.
        """
        while True:
            if self._outstanding <= 0:
                await self._request()
            message = await self._next_arrival()
            if message is None:
                if self._ordered:
                    raise ConsumerGoneError("what was on its way may be lost")
                self._outstanding = 0
                continue
            status = (message.headers or {}).get("Status")
            if status is None:
                self._outstanding -= 1
                return message
            await self._told(status, (message.headers or {}).get("Description", ""))

    async def close(self) -> None:
        """Take the request back: the server hands its messages to others at once."""
        self._forget_reconnects()
        if self._subscription is not None:
            with suppress(Exception):  # the connection may be gone already
                await self._subscription.unsubscribe()
            self._subscription = None

    def give_up(self) -> None:
        """Ask for nothing more; of an ordered consumer `next` says that it is gone."""
        self._wake()

    async def _next_arrival(self) -> Msg | None:
        """The next message of any sort; None after a reconnect, or too long a silence."""
        self._await_sign(SILENT_HEARTBEATS * self._heartbeat_seconds, self._suspect)
        try:
            return await self._arrived.get()
        finally:
            if self._silence is not None:
                self._silence.cancel()

    def _suspect(self) -> None:
        """Where this process itself was held up, a sign may have come and not been read yet."""
        self._await_sign(LAST_LOOK_SECONDS, self._wake)

    def _await_sign(self, seconds: float, then: Callable[[], None]) -> None:
        self._silence = asyncio.get_running_loop().call_later(seconds, then)

    async def _request(self) -> None:
        if self._subscription is None:
            self._inbox = self._client.new_inbox()
            self._subscription = await self._client.subscribe(self._inbox, cb=self._arrived.put)
        self._outstanding = self._batch
        body = {
            "batch": self._batch,
            "expires": int(EXPIRES_SECONDS * 1e9),
            "idle_heartbeat": int(self._heartbeat_seconds * 1e9),
        }
        await self._client.publish(self._subject, json.dumps(body).encode(), reply=self._inbox)

    async def _told(self, status: str, description: str) -> None:
        if status == _HEARTBEAT:
            return
        self._outstanding = 0
        if status == _TIMEOUT:
            return
        gone = "deleted" in description.lower() or "no consumer" in description.lower()
        if gone and status in (_CONFLICT, _NO_CONSUMER):
            raise ConsumerGoneError(description)
        if status == _NO_RESPONDER:
            # JetStream isn't up yet, or the consumer is gone and its subject has no listener.
            await asyncio.sleep(RETRY_SECONDS)
            raise ConsumerGoneError("nobody serves the consumer")
        log.debug("poll ended", extra={"status": status, "description": description})
        await asyncio.sleep(RETRY_SECONDS)

    def _wake(self) -> None:
        self._arrived.put_nowait(None)
