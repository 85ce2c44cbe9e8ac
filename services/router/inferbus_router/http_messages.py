"""The heads of HTTP/1.1 messages that the router writes itself.

Invariant: every response head says how long its body is (a length, chunks, or until the connection
closes) in exactly one way (RFC 9112, 6).
"""

from http import HTTPStatus

from inferbus_router.errors import RequestError
from inferbus_router.heads import LINE_END

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
LAST_CHUNK = b"0\r\n\r\n"
JSON_TYPE = b"application/json"

_STATUS_LINES = {
    status.value: b"HTTP/1.1 %d %b" % (status.value, status.phrase.encode())
    for status in HTTPStatus
}


def status_line(status: int) -> bytes:
    """The first line of a response, without its end; the reason may be empty (RFC 9112, 4)."""
    return _STATUS_LINES.get(status) or b"HTTP/1.1 %d " % status


def chunk(data: bytes) -> bytes:
    """One chunk of a chunked body; empty for empty data, which would end the body."""
    return b"%x\r\n%b\r\n" % (len(data), data) if data else b""


class Page:
    """A whole response of the router's own."""

    __slots__ = ("body", "content_type", "headers", "status")

    def __init__(
        self,
        status: int,
        body: bytes,
        content_type: bytes = JSON_TYPE,
        headers: list[tuple[bytes, bytes]] | None = None,
    ) -> None:
        self.status = status
        self.body = body
        self.content_type = content_type
        self.headers = headers or []

    def encoded(self, keep_alive: bool, request_id: bytes, without_body: bool = False) -> bytes:
        """The bytes of the response; without its body as the answer to HEAD."""
        lines = [status_line(self.status), *(b"%b: %b" % header for header in self.headers)]
        if self.status != HTTPStatus.NO_CONTENT:
            lines.append(b"content-type: " + self.content_type)
            lines.append(b"content-length: %d" % len(self.body))
        if request_id:
            lines.append(b"x-request-id: " + request_id)
        if not keep_alive:
            lines.append(b"connection: close")
        lines += (b"", b"" if without_body else self.body)
        return LINE_END.join(lines)


def error_page(error: RequestError) -> Page:
    """The response that tells a client of an error."""
    headers = list(error.headers)
    if error.retry_after_seconds is not None:
        headers.append((b"retry-after", b"%d" % error.retry_after_seconds))
    return Page(error.status, error.body(), headers=headers)
