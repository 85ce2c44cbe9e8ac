"""One HTTP request as it came, and what its head means for the router.

Invariant: `read_head` accepts a head only where every HTTP implementation understands it alike
(RFC 9112, section 11: request smuggling), and what it marks for forwarding holds nothing that
concerns only the connection with the client, nor what it proves to the router who it is.
"""

import os
from dataclasses import dataclass
from typing import NamedTuple, Self

from inferbus_router.errors import RequestError
from inferbus_router.heads import (
    HOP_BY_HOP,
    LINE_END,
    cutter,
    header_lines,
    without_headers,
)
from inferbus_router.http_errors import (
    expectation_failed,
    malformed_request,
    unsupported_encoding,
    unsupported_transfer_coding,
    version_not_supported,
)
from inferbus_router.policy_trace_context import Trace

_CUTTER = cutter(
    HOP_BY_HOP
    | {
        b"accept-encoding",
        b"authorization",
        b"content-encoding",
        b"content-length",
        b"content-type",
        b"expect",
        b"host",
        b"x-api-key",
        b"x-request-id",
    }
)
_ORDINARY_CONNECTION = frozenset({b"close", b"keep-alive"})
_MOST_ID_BYTES = 128
_GRAPHIC = bytes(range(0x21, 0x7F))


class RequestHead:
    """What the head of a request says; never changed once it is read."""

    content_length = 0
    """0 also where the body comes in chunks."""
    content_type = b""
    has_form = False
    """The body is a form (RFC 7578), whatever its parameters."""
    is_chunked = False
    expects_continue = False
    request_id = b""
    """The client's own; empty where it brings none that is usable."""
    authorization = b""
    """The value of Authorization; several are joined, which no scheme allows."""
    api_key = b""
    """The value of X-API-Key, likewise."""
    credentials = b""
    """The header lines of both, each behind its line end."""
    forwarded = b""
    """The header lines that go upstream as they came, each behind its line end."""

    def __init__(self, head: bytes, method: bytes, target: bytes, minor_version: int) -> None:
        self.method = method
        self.target = target
        """Path and query."""
        self.path = target.partition(b"?")[0].decode("latin-1")
        """Without the query."""
        self.minor_version = minor_version
        self._head = head

    @property
    def headers(self) -> list[tuple[bytes, bytes]]:
        """(name in lower case, value) of every header, in the order they came."""
        return header_lines(self._head)

    def with_length(self, content_length: int) -> Self:
        """The same of a head that differs in nothing but this number."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other.content_length = content_length
        return other


class Refusal(NamedTuple):
    """Why a request is not served, and by which routes it is all the same."""

    error: RequestError
    exceptions: frozenset[str | None]
    """What such a route says about authentication; None: nothing."""


@dataclass(frozen=True, slots=True)
class Rewritten:
    """What an engine is asked for in place of what the client asked for."""

    target: bytes
    """Path and query."""
    host: bytes
    """Empty: the endpoint's own."""


class Request:
    """A request; its body is there when it is complete."""

    body = b""
    rewritten: Rewritten | None = None
    """What the rule that serves it makes of it; None: nothing."""
    was_told_to_go_on = False
    trace: Trace | None = None
    """What its spans hang on; None where nobody traces."""
    principal = ""
    """Who sends it, as far as the router has checked that; empty: nobody in particular."""
    refusal: Refusal | None = None
    """Why most routes don't serve it (`access`)."""
    credentials = b""
    """Header lines for the engine to check, each behind its line end (routing spec, defect 32)."""

    def __init__(self, head: RequestHead, keep_alive: bool) -> None:
        self.head = head
        self.keep_alive = keep_alive
        self.request_id = head.request_id
        """The client's, or made for it."""


def read_head(head: bytes) -> RequestHead:
    """What a head says; it comes without its last, empty line.

    Raises `RequestError` (400, 415, 417, 501, 505) to refuse it. Takes for granted what the parser
    refuses by itself: two lengths, a length beside a transfer coding, line folding, bare line ends,
    control characters.
    """
    pieces = _CUTTER.split(head)
    line, _, _ = pieces[0].partition(LINE_END)
    read = _read_request_line(line, head)
    hosts = 0
    options = content_type = b""
    for index in range(1, len(pieces), 3):
        name = pieces[index].lower()
        value = pieces[index + 1].strip(b" \t")
        if name == b"host":
            hosts += 1
        elif name == b"content-length":
            read.content_length = int(value)
        elif name == b"content-type":
            read.content_type = value
            read.has_form = value[:19].lower() == b"multipart/form-data"
            content_type = b"\r\ncontent-type: " + value
        elif name == b"connection":
            options += b"," + value
        else:
            _read_special(read, name, value)
    if hosts != 1 and (hosts or read.minor_version):
        raise malformed_request("there must be exactly one Host header")
    read.forwarded = b"".join(pieces[::3])[len(line) :] + content_type
    if options:
        read.forwarded = _without_options(read.forwarded, options)
    return read


def _read_request_line(line: bytes, head: bytes) -> RequestHead:
    words = line.split(b" ")
    if len(words) != 3:
        raise malformed_request("the request line must be a method, a target and a version")
    method, target, version = words
    if target[:1] != b"/":
        target = _origin_form(target)
    if version == b"HTTP/1.1":
        return RequestHead(head, method, target, 1)
    if version == b"HTTP/1.0":
        return RequestHead(head, method, target, 0)
    raise version_not_supported(version.decode("latin-1"))


def _read_special(read: RequestHead, name: bytes, value: bytes) -> None:
    if name == b"x-request-id":
        if not read.request_id and is_usable_id(value):
            read.request_id = value
    elif name == b"authorization":
        read.authorization = _joined(read.authorization, value)
        read.credentials += b"\r\nauthorization: " + value
    elif name == b"x-api-key":
        read.api_key = _joined(read.api_key, value)
        read.credentials += b"\r\nx-api-key: " + value
    elif name == b"transfer-encoding":
        if not read.minor_version:
            raise malformed_request("HTTP/1.0 has no transfer codings")
        if value.lower() != b"chunked":
            raise unsupported_transfer_coding(value.decode("latin-1"))
        read.is_chunked = True
    elif name == b"expect":
        if value.lower() != b"100-continue":
            raise expectation_failed(value.decode("latin-1"))
        read.expects_continue = bool(read.minor_version)
    elif name == b"content-encoding" and value.lower() != b"identity":
        raise unsupported_encoding(value.decode("latin-1"))


def _joined(one: bytes, two: bytes) -> bytes:
    """The value of a header that came again (RFC 9110, 5.3)."""
    return one + b", " + two if one else two


def _origin_form(target: bytes) -> bytes:
    """Path and query of a request target in absolute form (RFC 9112, 3.2.2)."""
    scheme, separator, rest = target.partition(b"://")
    if not separator or scheme.lower() not in (b"http", b"https"):
        raise malformed_request("the request target must be a path")
    return b"/" + rest.partition(b"/")[2]


def _without_options(lines: bytes, options: bytes) -> bytes:
    """The lines without the headers that Connection headers make hop-by-hop."""
    named = [option.strip().lower() for option in options.split(b",")]
    names = [name for name in named if name and name not in _ORDINARY_CONNECTION]
    return without_headers(lines, names) if names else lines


def is_usable_id(value: bytes) -> bool:
    """True for a request id that may stand in headers and log lines: short, graphic ASCII, no
    space.
    """
    return 0 < len(value) <= _MOST_ID_BYTES and not value.translate(None, _GRAPHIC)


class RequestIds:
    """Ids for requests that bring none: UUIDs (version 4, RFC 9562), cheap to make.

    74 bits are drawn once, the rest counts, so that ids of different processes differ as random
    ones do. They are no secrets.
    """

    def __init__(self) -> None:
        digits = os.urandom(10).hex()
        self._prefix = f"{digits[:8]}-{digits[8:12]}-4{digits[12:15]}-a{digits[15:18]}-"
        self._last = 0

    def next(self) -> bytes:
        """The next id."""
        self._last += 1
        return f"{self._prefix}{self._last:012x}".encode()
