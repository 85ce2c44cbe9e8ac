"""One connection to an engine: writes requests, parses responses, hands them to whoever waits.

Invariant: a connection serves one request at a time and goes back to its pool only after a whole
response that leaves it usable; bytes that nobody asked for close it.
"""

import asyncio
from typing import Protocol, cast

from inferbus_router.policy_retry import Failure
from inferbus_router.relay import ResponseHead
from inferbus_router.response_reader import ResponseReader
from inferbus_router.upstream_tls import PeerTls


class ResponseReceiver(Protocol):
    """Who waits for the response on a connection."""

    def response_received(self, head: ResponseHead | None, body: bytes, is_complete: bool) -> None:
        """The next part of the response: its head once, and what came of its body."""
        ...

    def response_failed(self, failure: Failure, detail: str) -> None:
        """The response never comes, or never ends; the connection is closed."""
        ...


class ConnectionOwner(Protocol):
    """Where a connection goes when its exchange is done with it."""

    def release(self, connection: "UpstreamProtocol") -> None:
        """It can serve another exchange."""
        ...

    def closed(self, connection: "UpstreamProtocol") -> None:
        """It is gone."""
        ...


class UpstreamProtocol(asyncio.Protocol):
    """One connection to an engine."""

    _transport: asyncio.Transport | None = None
    _reader: ResponseReader
    """Made with the connection: what never came to be leaves nothing behind."""
    _receiver: ResponseReceiver | None = None
    _used = False
    """An earlier request had this connection."""
    _ended = False
    """The end of the connection is the engine's wish, not somebody's on the way (RFC 9112, 9.8)."""
    _silent = True
    """Nothing of the awaited response has come."""

    def __init__(self, owner: ConnectionOwner, tls: PeerTls | None = None) -> None:
        """`tls` is what the connection was opened with."""
        self._owner = owner
        self._tls = tls

    # What exchanges and pools do.

    def send(self, receiver: ResponseReceiver, parts: tuple[bytes, ...]) -> None:
        """Send a request; the receiver hears of its response."""
        self._receiver = receiver
        self._silent = True
        if self._transport is not None:
            self._transport.writelines(parts)

    def pause(self) -> None:
        """Take no more of the response for now: the client is slow."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()

    def resume(self) -> None:
        """Go on taking the response."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    def abandon(self) -> None:
        """Close at once: the engine stops working on a request whose connection is gone."""
        self._receiver = None
        if self._transport is not None:
            self._transport.abort()

    def close(self) -> None:
        """Close an idle connection."""
        if self._transport is not None:
            self._transport.close()

    # What the event loop does.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._reader = ResponseReader()

    def data_received(self, data: bytes) -> None:
        receiver, reader = self._receiver, self._reader
        if receiver is None:
            self.abandon()
            return
        self._silent = False
        had_head = reader.head is not None
        problem = reader.feed(data)
        if problem and reader.head is None:
            self._fail(receiver, problem)
            return
        head = None if had_head else reader.head
        body = reader.take_body()
        is_complete = reader.is_complete
        if is_complete:
            self._give_back(usable=reader.is_reusable and not problem and self._is_sent())
        if head is not None or body or is_complete:
            receiver.response_received(head, body, is_complete)
        if problem and self._receiver is receiver:
            self._fail(receiver, problem)

    def _fail(self, receiver: ResponseReceiver, problem: str) -> None:
        self.abandon()
        receiver.response_failed(Failure.BROKEN, problem)

    def _is_sent(self) -> bool:
        """The engine took the whole request, and didn't answer before it had."""
        return self._transport is not None and not self._transport.get_write_buffer_size()

    def _give_back(self, usable: bool) -> None:
        self._receiver = None
        if self._tls is not None and not self._used and self._transport is not None:
            self._tls.remember(self._transport)
        self._used = True
        self._reader.begin()
        if usable:
            self._owner.release(self)
        else:
            self.close()

    def eof_received(self) -> None:
        """The engine ended the connection as it should; with TLS only after its notice."""
        self._ended = True

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        self._owner.closed(self)
        self._reader.let_go()
        receiver, self._receiver = self._receiver, None
        if receiver is None:
            return
        head = self._reader.head
        if head is not None and head.ends_with_connection and self._ended and error is None:
            receiver.response_received(None, b"", True)
        elif self._silent and self._used:
            receiver.response_failed(Failure.STALE, "the endpoint closed the kept connection")
        else:
            reason = str(error or "") or "the endpoint closed the connection"
            receiver.response_failed(Failure.BROKEN, reason)
