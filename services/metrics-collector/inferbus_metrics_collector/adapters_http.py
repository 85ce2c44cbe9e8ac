"""One keep-alive connection to a pod: asks for a page, collects the answer, gives up early.

llhttp parses, nothing else touches the bytes: a GET costs a quarter of what a general client takes.
Invariant: one request at a time; an answer is a whole 200 page of text, or a reason; nothing over
the limits of `PageMemory` is ever held; a connection with an unfinished answer is never used again.
(RFC 9112; redirects are not followed, no cookies, no compression.)
"""

import asyncio

import httptools

from inferbus_metrics_collector.page_memory import PageMemory
from inferbus_metrics_collector.ports import Endpoint, ScrapeError

MOST_HEAD_BYTES = 64 * 1024
"""Of all that is received, what need not be the page: the head, and what frames chunks."""

_OTHER_TEXT = frozenset({b"", b"application/openmetrics-text", b"application/octet-stream"})


class StaleConnectionError(Exception):
    """A connection that had served before was closed instead of answering: ask again anew."""


def request_bytes(endpoint: Endpoint) -> bytes:
    """The request for a page."""
    host = f"[{endpoint.address}]" if ":" in endpoint.address else endpoint.address
    return (
        f"GET {endpoint.path} HTTP/1.1\r\nHost: {host}:{endpoint.port}\r\n"
        "Accept: text/plain;version=0.0.4\r\nAccept-Encoding: identity\r\n"
        "User-Agent: inferbus-metrics-collector\r\n\r\n"
    ).encode("ascii")


class PageConnection(asyncio.BufferedProtocol):
    """A connection; `is_idle` says whether it can take a request."""

    def __init__(self, memory: PageMemory) -> None:
        """All connections of a collector share one `memory`."""
        self._memory = memory
        self._body_bytes = 0
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._answer: asyncio.Future[bytes] | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._served = 0
        self._begin()

    @property
    def is_idle(self) -> bool:
        """Open and without a request under way."""
        transport = self._transport
        return self._answer is None and transport is not None and not transport.is_closing()

    def ask(self, request: bytes) -> asyncio.Future[bytes]:
        """Send a request; the page, `ScrapeError`, or `StaleConnectionError` comes of it."""
        assert self.is_idle
        assert self._transport is not None
        self._begin()
        self._answer = self._loop.create_future()
        self._transport.write(request)
        return self._answer

    def close(self) -> None:
        """Drop the connection and whatever is under way."""
        if self._transport is not None:
            self._transport.abort()

    def _begin(self) -> None:
        self._received = 0
        self._body = b""
        self._more_body = bytearray()
        self._type = b""
        self._refusal = ""
        self._in_head = True
        self._ends_with_connection = True
        self._keep = False

    # asyncio.BufferedProtocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Part of asyncio.BufferedProtocol."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def get_buffer(self, sizehint: int) -> memoryview:
        """Part of asyncio.BufferedProtocol."""
        del sizehint
        return self._memory.receive_buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Part of asyncio.BufferedProtocol."""
        if self._answer is None:
            self.close()  # nobody asked
            return
        self._received += nbytes
        try:
            self._parser.feed_data(self._memory.receive_buffer[:nbytes])
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self._fail(f"no HTTP answer: {error}")
            return
        if self._refusal:
            self._fail(self._refusal)
        elif self._answer is not None:
            self._refuse_frames_without_a_page()

    def _refuse_frames_without_a_page(self) -> None:
        if self._received - self._body_bytes <= MOST_HEAD_BYTES + self._body_bytes:
            return
        what = "the head of the answer" if self._in_head else "what frames the page"
        self._fail(f"{what} is larger than {MOST_HEAD_BYTES} bytes")

    def eof_received(self) -> None:
        """Part of asyncio.BufferedProtocol."""
        if self._answer is not None and not self._in_head and self._ends_with_connection:
            self._succeed()

    def connection_lost(self, error: Exception | None) -> None:
        """Part of asyncio.BufferedProtocol."""
        if self._answer is None:
            return
        if self._served and not self._received:
            self._settle(StaleConnectionError())
        else:
            self._fail("the connection was closed before the page was complete")

    # httptools

    def on_message_begin(self) -> None:
        """Part of httptools' protocol."""
        if self._answer is None:
            self.close()  # a second answer to one request

    def on_header(self, name: bytes, value: bytes) -> None:
        """Part of httptools' protocol."""
        match name.lower():
            case b"content-length":
                self._ends_with_connection = False
                if int(value) > self._memory.most_page_bytes:
                    most_bytes = self._memory.most_page_bytes
                    self._refusal = f"the page is larger than {most_bytes} bytes"
            case b"transfer-encoding":
                self._ends_with_connection = False
            case b"content-type":
                self._type = value.partition(b";")[0].strip().lower()
            case b"content-encoding" if value.strip().lower() != b"identity":
                self._refusal = "the page is compressed, which wasn't asked for"

    def on_headers_complete(self) -> None:
        """Part of httptools' protocol."""
        status = self._parser.get_status_code()
        self._in_head = status < 200  # an interim answer, the real one follows
        self._keep = self._parser.should_keep_alive()
        if 200 <= status < 300:
            if not _is_text(self._type):
                shown = self._type.decode(errors="replace")
                self._refusal = self._refusal or f"the page is {shown}, not text"
        elif not self._in_head:
            self._refusal = f"HTTP status {status}"

    def on_body(self, body: bytes) -> None:
        """Part of httptools' protocol."""
        if self._refusal:
            return
        wanted_bytes = self._body_bytes + len(body)
        self._refusal = self._memory.grow(self._body_bytes, wanted_bytes)
        if self._refusal:
            return
        self._body_bytes = wanted_bytes
        if self._body:
            self._more_body += body
        else:
            self._body = body

    def on_message_complete(self) -> None:
        """Part of httptools' protocol."""
        if not self._in_head and not self._refusal:
            self._succeed()

    def _succeed(self) -> None:
        self._served += 1
        self._settle(b"".join((self._body, self._more_body)) if self._more_body else self._body)
        if not self._keep or self._ends_with_connection:
            self.close()

    def _fail(self, reason: str) -> None:
        self._settle(ScrapeError(reason))
        self.close()

    def _settle(self, outcome: bytes | Exception) -> None:
        answer, self._answer = self._answer, None
        self._memory.release(self._body_bytes)
        self._body, self._more_body, self._body_bytes = b"", bytearray(), 0
        if answer is None or answer.done():
            return
        if isinstance(outcome, bytes):
            answer.set_result(outcome)
        else:
            answer.set_exception(outcome)


def _is_text(content_type: bytes) -> bool:
    if content_type == b"text/html":
        return False
    return content_type.startswith(b"text/") or content_type in _OTHER_TEXT
