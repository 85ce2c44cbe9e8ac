"""Turns the bytes of a client connection into requests.

The parser (llhttp, strict) sees every byte and decides what is HTTP and where messages end; the
head it accepted is then read as a whole, which is far cheaper than one call per header. Invariant:
a request is handed out only when it is complete and within the limits; after the first error
nothing more is read, because nobody can know where the next request would begin.
"""

import httptools

from inferbus_router.errors import RequestError, method_not_allowed
from inferbus_router.heads import HEAD_END, LINE_END, HeadMemory
from inferbus_router.http_errors import (
    body_too_large,
    framing_too_large,
    headers_too_large,
    malformed_request,
)
from inferbus_router.request import Request, RequestHead, read_head

IDLE, HEAD, BODY = range(3)
"""What is expected next: a request, the rest of a head, or the rest of a body."""

_END_OF_DATA, _UPGRADE, _NEXT_REQUEST = range(3)
"""Where the parser stopped."""

_MOST_FRAMING = 8
"""Bytes around a byte of a body in chunks: a chunk of one byte has 5."""


class RequestReader:
    """The parser of one connection."""

    phase = IDLE
    request: Request | None = None
    """The one whose body is being read."""
    _head = b""
    """What has come of an unfinished head."""
    _head_ended = False
    _keep_alive = False
    _body_bytes = 0
    _chunked_bytes = 0
    """Of a body in chunks, with what stands between its bytes."""
    _message_ended = False
    _is_over = False
    """The last request that can be told apart has been read."""

    def __init__(self, max_head_bytes: int, max_body_bytes: int) -> None:
        self.complete: list[Request] = []
        """Requests that were read; the caller takes them out."""
        self._max_head_bytes = max_head_bytes
        self._max_body_bytes = max_body_bytes
        self._parser = httptools.HttpRequestParser(self)
        self._body: list[bytes] = []
        self._memory: HeadMemory[RequestHead] = HeadMemory()

    def feed(self, data: bytes) -> None:
        """Read on; raises `RequestError` where the bytes can't be served as HTTP requests."""
        while data and not self._is_over:
            data = self._feed_body(data) if self.phase == BODY else self._feed_head(data)

    def let_go(self) -> None:
        """The connection is gone: give back the parser, which refers to its reader, so that both
        are freed at once.
        """
        del self._parser

    def _feed_head(self, data: bytes) -> bytes:
        """Read a head, and what has come of its body; returns what comes behind the request."""
        text = self._head + data if self._head else data.lstrip(LINE_END)
        end = text.find(HEAD_END)
        if end < 0:
            self._keep_unfinished(text, data)
            return b""
        if end > self._max_head_bytes:
            raise headers_too_large(self._max_head_bytes)
        self._head = b""
        self._head_ended = self._message_ended = False
        parsed = self._parse(data)
        if not self._head_ended:
            raise malformed_request("its head does not end where it should")
        head = self._read_head(text[:end])
        request = self.request = Request(head, self._keep_alive)
        if head.content_length > self._max_body_bytes:
            raise body_too_large(self._max_body_bytes)
        if parsed == _END_OF_DATA:
            if self._message_ended:
                self._end_request(request)
            else:
                self.phase = BODY
            return b""
        body_start = len(data) - len(text) + end + len(HEAD_END)
        if parsed == _UPGRADE:
            self._ignore_upgrade(request)
            return data[body_start:]
        self._end_request(request)
        return self._behind(request, data, body_start + head.content_length)

    def _read_head(self, head: bytes) -> RequestHead:
        read = self._memory.recall(head)
        if read is None:
            read = read_head(head)
            self._memory.remember(head, read)
        return read

    def _keep_unfinished(self, head: bytes, data: bytes) -> None:
        if not head:
            return
        self.phase = HEAD
        self._head = head
        self._message_ended = False
        if len(head) > self._max_head_bytes:
            raise headers_too_large(self._max_head_bytes)
        self._parse(data)

    def _feed_body(self, data: bytes) -> bytes:
        """Read on in a body; returns what comes behind it."""
        request = self.request
        assert request
        left = request.head.content_length - self._body_bytes
        parsed = self._parse(data)
        if self._message_ended:
            self._end_request(request)
        elif request.head.is_chunked:
            self._check_framing(len(data))
        return self._behind(request, data, left) if parsed == _NEXT_REQUEST else b""

    def _check_framing(self, size: int) -> None:
        """Extensions of chunks and trailers count for nothing, so they must not go on for ever."""
        self._chunked_bytes += size
        framing_bytes = self._chunked_bytes - self._body_bytes
        if framing_bytes > self._max_head_bytes + _MOST_FRAMING * self._body_bytes:
            raise framing_too_large(self._max_head_bytes)

    def _end_request(self, request: Request) -> None:
        body = self._body
        if body:
            request.body = body[0] if len(body) == 1 else b"".join(body)
            self._body = []
            self._body_bytes = 0
        self._chunked_bytes = 0
        self.phase = IDLE
        self.request = None
        self.complete.append(request)

    def _behind(self, request: Request, data: bytes, start: int) -> bytes:
        """The next request, which came in one piece with the end of this one.

        Where it begins behind a body in chunks can't be told: then the connection ends after this
        request, which clients that send ahead must expect (RFC 9112, 9.3.2).
        """
        self._parser = httptools.HttpRequestParser(self)
        if not request.head.is_chunked:
            return data[start:]
        request.keep_alive = False
        self._is_over = True
        return b""

    def _ignore_upgrade(self, request: Request) -> None:
        """Read on as if no other protocol had been offered (RFC 9110, 7.8 allows that).

        The parser takes what follows for the other protocol, so a new one is told where it stands.
        """
        head = request.head
        if head.method == b"CONNECT":
            raise method_not_allowed("CONNECT", head.path, b"POST")
        framing = (
            b"transfer-encoding: chunked"
            if head.is_chunked
            else b"content-length: %d" % head.content_length
        )
        self.phase = BODY
        self._parser = httptools.HttpRequestParser(self)
        self._message_ended = False
        self._parse(b"POST / HTTP/1.1\r\n" + framing + HEAD_END)
        if self._message_ended:
            self._end_request(request)

    def _parse(self, data: bytes) -> int:
        """Show bytes to the parser; returns where it stopped."""
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            return _UPGRADE
        except httptools.HttpParserError as error:
            refusal = _refusal(error)
        else:
            return _END_OF_DATA
        if refusal is None:
            return _NEXT_REQUEST
        raise refusal

    # What the parser calls.

    def on_message_begin(self) -> None:
        if self._message_ended:
            raise _NextRequestError

    def on_headers_complete(self) -> None:
        self._head_ended = True
        self._keep_alive = self._parser.should_keep_alive()

    def on_body(self, data: bytes) -> None:
        self._body.append(data)
        self._body_bytes += len(data)
        if self._body_bytes > self._max_body_bytes:
            raise body_too_large(self._max_body_bytes)

    def on_message_complete(self) -> None:
        self._message_ended = True


class _NextRequestError(Exception):
    """Another request follows in the same piece."""


def _refusal(error: httptools.HttpParserError) -> RequestError | None:
    """What to refuse the request with; None where only another one follows.

    It is raised outside of the handler, and without a traceback: those refer to frames, which refer
    to the connection that keeps the refusal.
    """
    cause = error.__context__
    if isinstance(cause, _NextRequestError):
        return None
    if isinstance(cause, RequestError):
        return cause.with_traceback(None)
    return malformed_request(str(error))
