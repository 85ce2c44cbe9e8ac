"""One engine response on its way to the client: framing, headers, and what is read in passing.

Pure: bytes in, bytes out. Invariant: a client sees the end of a response only when the engine's
response ended properly; a response that broke off is never terminated as if it were whole (routing
spec, defect 19).
"""

from typing import Self

from inferbus_router.event_stream import EventStream, failure_event
from inferbus_router.heads import HOP_BY_HOP, cutter
from inferbus_router.http_messages import LAST_CHUNK, chunk
from inferbus_router.usage import JsonUsageReader, UsageReader

_CUTTER = cutter(
    HOP_BY_HOP | {b"content-encoding", b"content-length", b"content-type", b"x-request-id"}
)
_WITHOUT_BODY = frozenset({204, 304})

_BY_LENGTH, _IN_CHUNKS, _UNTIL_CLOSE = range(3)
"""How a body is delimited (RFC 9112, 6)."""


class ResponseHead:
    """What the head of an engine's response says; never changed once it is read."""

    content_length: int | None = None
    content_type = b""
    """In lower case, without parameters."""
    is_chunked = False
    is_encoded = False
    """The body is compressed: it can only be passed on."""
    forwarded = b""
    """The status line behind its version, and the headers that concern the client."""

    def __init__(self, status: int) -> None:
        self.status = status

    def with_length(self, content_length: int) -> Self:
        """The same of a head that differs in nothing but this number."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other.content_length = content_length
        return other

    @property
    def has_body(self) -> bool:
        """False for statuses whose responses end with the head."""
        return self.status not in _WITHOUT_BODY

    @property
    def ends_with_connection(self) -> bool:
        """Only the end of the connection ends the body."""
        return self.content_length is None and not self.is_chunked and self.has_body


def read_response_head(status: int, head: bytes) -> ResponseHead:
    """What a head says; it comes without its last, empty line.

    Raises `ValueError` for a transfer coding that can't be decoded.
    """
    pieces = _CUTTER.split(head)
    read = ResponseHead(status)
    last = b""
    for index in range(1, len(pieces), 3):
        name = pieces[index].lower()
        value = pieces[index + 1].strip(b" \t")
        if name == b"content-length":
            read.content_length = int(value)
        elif name == b"content-type":
            read.content_type = value.partition(b";")[0].rstrip().lower()
            last += b"\r\ncontent-type: " + value
        elif name == b"transfer-encoding":
            if value.lower() != b"chunked":
                raise ValueError(f"transfer coding {value.decode('latin-1')!r}")
            read.is_chunked = True
        elif name == b"content-encoding":
            read.is_encoded = value.lower() != b"identity"
            last += b"\r\ncontent-encoding: " + value
    read.forwarded = b"".join(pieces[::3])[len(b"HTTP/1.1") :] + last
    return read


class Relay:
    """Turns one response into the bytes for one client."""

    __slots__ = (
        "_framing",
        "_head",
        "_reader",
        "_stream",
        "is_event_stream",
        "must_close",
        "usage",
    )

    def __init__(self, head: ResponseHead, minor_version: int, drop_usage: bool) -> None:
        """`drop_usage`: the router itself asked for usage, the client must not see it."""
        self._head = head
        self.usage: UsageReader | None = None
        """What the response tells about tokens; None where it can't be read."""
        self.is_event_stream = False
        """The client reads events."""
        self.must_close = False
        """The end of the connection is the end of the response."""
        self._framing = _BY_LENGTH
        self._stream: EventStream | None = None
        self._reader: JsonUsageReader | None = None
        content_type = b"" if head.is_encoded else head.content_type
        if content_type == b"application/json":
            self.usage = self._reader = JsonUsageReader()
        elif content_type == b"text/event-stream":
            self.usage = self._stream = EventStream(drop_usage)
            self.is_event_stream = True
        if head.content_length is not None and not (drop_usage and self.is_event_stream):
            return
        if head.has_body:
            self._framing = _IN_CHUNKS if minor_version else _UNTIL_CLOSE
            self.must_close = not minor_version

    @property
    def is_finished(self) -> bool:
        """The client has all of the response, whatever becomes of the connection."""
        return self._stream is not None and self._stream.is_finished

    def take_events(self) -> int:
        """Data events forwarded since the last call."""
        if self._stream is None:
            return 0
        events, self._stream.events = self._stream.events, 0
        return events

    def head(self, request_id: bytes, keep_alive: bool) -> bytes:
        """The response's head for the client."""
        head = self._head
        last = b"" if keep_alive else b"\r\nconnection: close"
        if self._framing == _IN_CHUNKS:
            last += b"\r\ntransfer-encoding: chunked"
        elif self._framing == _BY_LENGTH and head.content_length is not None:
            last += b"\r\ncontent-length: %d" % head.content_length
        return b"HTTP/1.1%b\r\nx-request-id: %b%b\r\n\r\n" % (
            head.forwarded,
            request_id,
            last,
        )

    def body(self, data: bytes) -> bytes:
        """The next piece of the body for the client."""
        if self._stream is not None:
            data = self._stream.feed(data)
        elif self._reader is not None:
            self._reader.feed(data)
        return chunk(data) if self._framing == _IN_CHUNKS else data

    def end(self) -> bytes:
        """The response ended as it should."""
        rest = self._stream.end() if self._stream is not None else b""
        return chunk(rest) + LAST_CHUNK if self._framing == _IN_CHUNKS else rest

    def failure(self, error: bytes) -> bytes:
        """The response broke off: an event with the error object in a stream, otherwise nothing."""
        if self._stream is None or self._framing == _BY_LENGTH:
            return b""
        event = failure_event(error)
        return chunk(event) if self._framing == _IN_CHUNKS else event
