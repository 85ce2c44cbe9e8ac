"""Replies to this connection's requests.

One subscription receives all replies. A request that was sent fails as soon as a reconnect shows
that its reply can't come any more, instead of at its deadline.
"""

import asyncio
import itertools

import nats.errors
from nats.aio.client import Client
from nats.aio.msg import Msg

_NO_RESPONDERS = "503"


class LostRequestError(nats.errors.Error):
    """The connection was lost between a request and its reply: it may have been served or not."""


class ReplyBox:
    """Sends requests and matches their replies."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._inbox = ""
        self._numbers = itertools.count(1)
        self._waiting: dict[str, tuple[asyncio.Future[Msg], bool]] = {}

    async def open(self) -> None:
        """Listen for replies; once, after the connection is open."""
        self._inbox = self._client.new_inbox()
        await self._client.subscribe(f"{self._inbox}.*", cb=self._arrived)

    async def ask(
        self, subject: str, body: bytes, timeout: float, headers: dict[str, str] | None
    ) -> Msg:
        """One request and its reply.

        Raises `LostRequestError`, or nats-py's `TimeoutError` and `NoRespondersError`.
        """
        place = f"{self._inbox}.{next(self._numbers)}"
        loop = asyncio.get_running_loop()
        reply: asyncio.Future[Msg] = loop.create_future()
        self._waiting[place] = (reply, self._client.is_connected)
        expiry = loop.call_later(timeout, _expire, reply)
        try:
            await self._client.publish(subject, body, reply=place, headers=headers)
            message = await reply
        finally:
            expiry.cancel()
            del self._waiting[place]
        if not message.data and (message.headers or {}).get("Status") == _NO_RESPONDERS:
            raise nats.errors.NoRespondersError
        return message

    def reconnected(self) -> None:
        """Fail what was sent over the connection that is gone."""
        for reply, sent in self._waiting.values():
            if sent and not reply.done():
                reply.set_exception(LostRequestError("the connection was lost meanwhile"))

    async def _arrived(self, message: Msg) -> None:
        reply, _ = self._waiting.get(message.subject, (None, False))
        if reply is not None and not reply.done():
            reply.set_result(message)


def _expire(reply: asyncio.Future[Msg]) -> None:
    if not reply.done():
        reply.set_exception(nats.errors.TimeoutError())
