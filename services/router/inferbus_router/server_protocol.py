"""One connection from a client: hands its requests on one by one, and writes responses in order.

Nothing is a stream or a task here: the event loop calls in, and what it brings is acted on at once.
A client that closes its side, even only the sending half, has left: what runs for it is stopped,
since nobody can tell the two apart and an engine's time is dear. Invariant: at most one request of
a connection is being served; later ones that were sent ahead wait, and reading stops meanwhile.
"""

import asyncio
from typing import Protocol, cast

from inferbus_router.errors import RequestError
from inferbus_router.http_errors import request_timeout
from inferbus_router.http_messages import CONTINUE, Page, error_page
from inferbus_router.request import Request, RequestIds
from inferbus_router.request_reader import BODY, HEAD, IDLE, RequestReader
from inferbus_router.timekeeper import Deadlines


class RunningRequest(Protocol):
    """A request that is being served, as its client connection sees it."""

    def client_left(self) -> None:
        """The connection is gone."""
        ...

    def client_paused(self) -> None:
        """The client takes the response more slowly than it comes."""
        ...

    def client_resumed(self) -> None:
        """It has caught up."""
        ...


class RequestHandler(Protocol):
    """What requests are handed to."""

    def handle(self, client: "ServerProtocol", request: Request) -> RunningRequest | None:
        """Serve a request; None where `client.answer` was called already."""
        ...

    def refused(self, request: Request | None, error: RequestError) -> None:
        """A request was refused before it was complete; None where not even its head was."""
        ...


class Surroundings(Protocol):
    """What the connections of one listener share."""

    handler: RequestHandler
    request_ids: RequestIds
    draining: bool
    """New requests are still served, each as the last of its connection."""
    closes_idle: bool
    """A connection is closed as soon as it has no request, whatever was promised."""
    max_head_bytes: int
    max_body_bytes: int
    head_deadlines: Deadlines["ServerProtocol"]
    body_deadlines: Deadlines["ServerProtocol"]
    idle_deadlines: Deadlines["ServerProtocol"]
    closing_deadlines: Deadlines["ServerProtocol"]

    def now_ms(self) -> int:
        """Milliseconds by the event loop's clock."""
        ...

    def opened(self, connection: "ServerProtocol") -> None:
        """A client connected."""
        ...

    def closed(self, connection: "ServerProtocol") -> None:
        """A connection is gone."""
        ...


class ServerProtocol(asyncio.Protocol):
    """One connection from a client."""

    def __init__(self, shared: Surroundings) -> None:
        self._shared = shared
        self._reader = RequestReader(shared.max_head_bytes, shared.max_body_bytes)
        self._transport: asyncio.Transport | None = None
        self._deadlines: Deadlines[ServerProtocol] | None = None
        """What the client is given time for now, but for its next request."""
        self._refusal: RequestError | None = None
        """Why nothing after the waiting requests can be served."""
        self._running: RunningRequest | None = None
        self._serving = False
        self._closing = False
        self._paused = False
        self._served = 0
        self._served_at_check = -1
        """`_served` when the idle deadline passed last."""

    # What handlers and exchanges do.

    def keeps_alive(self, request: Request) -> bool:
        """Whether the response to a request should promise another one on this connection."""
        return request.keep_alive and not self._shared.draining

    @property
    def local_port(self) -> int:
        """Where the client connected; 0 once it has left."""
        address = self._transport.get_extra_info("sockname") if self._transport else None
        return int(address[1]) if address else 0

    def write(self, data: bytes) -> None:
        """Send a part of the response."""
        if self._transport is not None:
            self._transport.write(data)

    def answer(self, request: Request, page: Page) -> None:
        """Send a whole response, which ends the request."""
        keep_alive = self.keeps_alive(request)
        without_body = request.head.method == b"HEAD"
        self.write(page.encoded(keep_alive, request.request_id, without_body))
        self.response_ended(keep_alive)

    def response_ended(self, keep_alive: bool) -> None:
        """The response is written in full; `keep_alive` is what its head said."""
        self._running = None
        if not keep_alive or self._shared.closes_idle:
            self.close()
        elif not self._serving and (
            self._reader.complete or self._paused or self._reader.phase != IDLE
        ):
            self._serve()

    def break_off(self) -> None:
        """End the connection without ending the response, after what is written is sent."""
        self._running = None
        self.close()

    def abort(self) -> None:
        """End the connection at once; what ran for it has ended."""
        self._running = None
        self.drop()

    def drop(self) -> None:
        """End the connection at once; what runs for it is told that its client has left."""
        if self._transport is not None:
            self._transport.abort()

    def close(self) -> None:
        """Close once what is written is sent, or the time for it is over."""
        self._closing = True
        self._reader.complete.clear()
        if self._transport is not None:
            self._count(self._shared.closing_deadlines)
            self._transport.close()

    @property
    def is_idle(self) -> bool:
        """Nothing is being received or served."""
        reader = self._reader
        return self._running is None and reader.phase == IDLE and not reader.complete

    # What the clock does.

    def idle_for_long(self) -> None:
        """Close a connection that had no request since the last call; look again later
        otherwise.
        """
        if self.is_idle and self._served == self._served_at_check:
            self.close()
            return
        self._served_at_check = self._served
        self._shared.idle_deadlines.start(self, self._shared.now_ms())

    def deadline_passed(self) -> None:
        """What was expected of the client didn't come in time."""
        deadlines, self._deadlines = self._deadlines, None
        if self._closing or deadlines is None:
            self.abort()
            return
        part = "head" if self._reader.phase == HEAD else "body"
        self._refusal = request_timeout(part, deadlines.limit_ms / 1000)
        self._serve()

    # What the event loop does.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._shared.opened(self)
        self._shared.idle_deadlines.start(self, self._shared.now_ms())

    def data_received(self, data: bytes) -> None:
        if self._closing or self._refusal is not None:
            return
        try:
            self._reader.feed(data)
        except RequestError as error:
            self._refusal = error.with_traceback(None)
        if self._running is None:
            self._serve()
        if self._reader.complete or self._refusal is not None:
            self._pause_reading()

    def eof_received(self) -> None:
        """The client has left; the transport closes itself."""

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        self._closing = True
        self._stop_counting()
        self._shared.idle_deadlines.stop(self)
        self._shared.closed(self)
        self._reader.complete.clear()
        self._reader.let_go()
        running, self._running = self._running, None
        if running is not None:
            running.client_left()

    def pause_writing(self) -> None:
        if self._running is not None:
            self._running.client_paused()

    def resume_writing(self) -> None:
        if self._running is not None:
            self._running.client_resumed()

    # How it goes on.

    def _serve(self) -> None:
        """Serve what is complete, until something takes longer or nothing is left."""
        waiting = self._reader.complete
        self._serving = True
        while waiting and self._running is None:
            request = waiting.pop(0)
            if not request.request_id:
                request.request_id = self._shared.request_ids.next()
            self._served += 1
            self._running = self._shared.handler.handle(self, request)
        self._serving = False
        if self._running is None and not self._closing:
            self._wait_for_more()
        elif self._deadlines is not None and not self._closing:
            self._stop_counting()

    def _wait_for_more(self) -> None:
        if self._refusal is not None:
            self._refuse(self._refusal)
            return
        if self._paused and self._transport is not None:
            self._paused = False
            self._transport.resume_reading()
        phase = self._reader.phase
        if phase == BODY:
            self._continue_if_expected()
            self._count(self._shared.body_deadlines)
        elif phase == IDLE:
            self._stop_counting()
        elif self._deadlines is not self._shared.head_deadlines:
            self._count(self._shared.head_deadlines)

    def _continue_if_expected(self) -> None:
        request = self._reader.request
        if request is not None and request.head.expects_continue and not request.was_told_to_go_on:
            request.was_told_to_go_on = True
            self.write(CONTINUE)

    def _refuse(self, error: RequestError) -> None:
        """Answer with an error and read no more; the client may still be sending, and is left time
        to see the answer before the connection is closed (RFC 9112, 9.6).
        """
        self._closing = True
        request = self._reader.request
        self._shared.handler.refused(request, error)
        self.write(error_page(error).encoded(False, request.request_id if request else b""))
        if self._transport is not None:
            if self._transport.can_write_eof():
                self._transport.write_eof()
            if self._paused:
                self._transport.resume_reading()
            self._count(self._shared.closing_deadlines)

    def _pause_reading(self) -> None:
        if not self._paused and not self._closing and self._transport is not None:
            self._paused = True
            self._transport.pause_reading()

    def _count(self, deadlines: Deadlines["ServerProtocol"]) -> None:
        if self._deadlines is not deadlines:
            self._stop_counting()
            self._deadlines = deadlines
        deadlines.start(self, self._shared.now_ms())

    def _stop_counting(self) -> None:
        if self._deadlines is not None:
            self._deadlines.stop(self)
            self._deadlines = None
