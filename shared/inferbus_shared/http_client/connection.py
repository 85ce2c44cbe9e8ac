"""One connection to a server: writes requests, parses answers, notices silence.

llhttp decides what is HTTP and where an answer ends. Invariant: one request at a time; a connection
takes another only after a whole answer that leaves it usable; bytes that nobody asked for close it.
(RFC 9112)
"""

import asyncio
from collections.abc import Callable
from typing import cast

import httptools

from inferbus_shared.http_client.answer import Answer
from inferbus_shared.http_client.failures import (
    NoAnswerError,
    NotSentError,
    StaleConnectionError,
)
from inferbus_shared.http_client.send_by import is_too_late

_MOST_HEAD_BYTES = 2**18
_NEVER = float("inf")
_UNKNOWN = "whether the request was carried out isn't known"


class Connection(asyncio.Protocol):
    """A connection; whoever holds it asks, and closes it unless the answer was whole."""

    _transport: asyncio.Transport | None = None
    _answer: Answer | None = None
    _used = False
    """An earlier request had it."""
    _head_bytes = 0
    _in_head = True
    _is_delimited = False
    """The answer says where it ends; else the end of the connection does."""
    _keep = False
    _timer: asyncio.TimerHandle | None = None
    _limit_seconds = 0.0
    _deadline = _NEVER
    """When the silence has lasted too long, in the loop's time."""

    def __init__(self, lost: Callable[["Connection"], None]) -> None:
        """`lost` is called once, when the connection is closed, whoever closed it."""
        self._loop = asyncio.get_running_loop()
        self._lost = lost
        self._parser = httptools.HttpResponseParser(self)

    @property
    def is_idle(self) -> bool:
        """Open and without a request under way."""
        transport = self._transport
        return self._answer is None and transport is not None and not transport.is_closing()

    def ask(self, request: bytes, silence_seconds: float, *, streamed: bool = False) -> Answer:
        """Send a request; what comes back, comes in the answer.

        `silence_seconds` is the longest time without a byte of it. One that is `streamed` is taken
        as it comes, and read no faster. Raises `NotSentError` where it's too late, and
        `NoAnswerError` where the server has closed the connection meanwhile.
        """
        if is_too_late():
            raise NotSentError("the time to send it had passed")
        if self._transport is None or not self.is_idle:
            raise NoAnswerError("the server closed the connection")
        answer = Answer(self._resume if streamed else None)
        self._answer = answer
        self._in_head, self._head_bytes = True, 0
        self._limit_seconds = silence_seconds
        self._wait_until(self._loop.time() + silence_seconds)
        self._transport.write(request)
        return answer

    def close(self, reason: str = "the connection was closed") -> None:
        """Close at once, and end what is under way: an orderly end of TLS waits for the server."""
        self._fail(NoAnswerError(reason))
        if self._transport is not None:
            self._transport.abort()

    # Silence.

    def _wait_until(self, deadline: float) -> None:
        """One timer serves many requests: it looks again where it went off too early."""
        self._deadline = deadline
        if self._timer is not None:
            if self._timer.when() <= deadline:
                return
            self._timer.cancel()
        self._timer = self._loop.call_at(deadline, self._look)

    def _look(self) -> None:
        self._timer = None
        if self._answer is None or self._deadline == _NEVER:
            return
        if self._loop.time() < self._deadline:
            self._wait_until(self._deadline)
            return
        self.close(f"nothing came for {self._limit_seconds:g} s; {_UNKNOWN}")

    def _resume(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()
            self._wait_until(self._loop.time() + self._limit_seconds)

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Bytes can be sent; called again with the transport that encrypts."""
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        """Part of asyncio.Protocol."""
        answer = self._answer
        if answer is None:
            self.close()
            return
        self._deadline = self._loop.time() + self._limit_seconds
        if self._in_head:
            self._head_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self.close("the server switched protocols")
            return
        except httptools.HttpParserError as error:
            self.close(f"what came is no HTTP: {error.__context__ or error}")
            return
        if answer.is_complete:
            self._end(answer)
        elif self._in_head and self._head_bytes > _MOST_HEAD_BYTES:
            self.close(f"the head of the answer is larger than {_MOST_HEAD_BYTES} bytes")
        else:
            answer.tell()
            if answer.is_full:
                self._pause()

    def _pause(self) -> None:
        assert self._transport is not None
        self._transport.pause_reading()
        self._deadline = _NEVER

    def _end(self, answer: Answer) -> None:
        """The answer is whole: take another request, if the server read all of this one."""
        assert self._transport is not None
        self._answer = None
        self._used = True
        if not self._keep or self._transport.get_write_buffer_size():
            self._transport.abort()
        answer.tell()

    def connection_lost(self, error: Exception | None) -> None:
        """Part of asyncio.Protocol."""
        self._transport = None
        if self._timer is not None:
            self._timer.cancel()
        answer = self._answer
        if answer is not None and error is None and answer.status and not self._is_delimited:
            self._answer = None
            answer.is_complete = True
            answer.tell()
        elif self._used and not self._head_bytes:
            self._fail(StaleConnectionError(f"the server closed the kept connection; {_UNKNOWN}"))
        else:
            reason = str(error) if error else "the server closed the connection"
            self._fail(NoAnswerError(f"{reason}; {_UNKNOWN}"))
        self._lost(self)

    def _fail(self, failure: NoAnswerError) -> None:
        answer, self._answer = self._answer, None
        if answer is not None:
            answer.fail(failure)

    # httptools

    def on_message_begin(self) -> None:
        """Part of httptools' protocol."""
        if self._answer is None or self._answer.is_complete:
            raise ValueError("an answer that nobody asked for")
        self._in_head = True
        self._is_delimited = False

    def on_header(self, name: bytes, value: bytes) -> None:
        """Part of httptools' protocol; called for trailers too."""
        assert self._answer is not None
        if not self._in_head:
            return
        name = name.lower()
        if name in (b"content-length", b"transfer-encoding"):
            self._is_delimited = True
        elif name == b"content-type":
            kind = value.partition(b";")[0].strip().lower()
            self._answer.content_type = kind.decode("latin-1")
        elif name == b"retry-after":
            self._answer.retry_after = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        """Part of httptools' protocol."""
        assert self._answer is not None
        status = self._parser.get_status_code()
        if status >= 200:
            self._answer.status = status
            self._in_head = False
            self._keep = self._parser.should_keep_alive()

    def on_body(self, body: bytes) -> None:
        """Part of httptools' protocol."""
        assert self._answer is not None
        self._answer.add(body)

    def on_message_complete(self) -> None:
        """Part of httptools' protocol; an interim answer is none yet (RFC 9110, 15.2)."""
        assert self._answer is not None
        if self._answer.status:
            self._answer.is_complete = True
