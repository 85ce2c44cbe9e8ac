"""Turns the bytes of an engine's connection into the parts of a response.

As on the other side, the parser (llhttp, strict) decides what is HTTP and where the message ends,
and the head it accepted is read as a whole. Invariant: nothing is handed out that the parser has
not accepted, and nothing is taken for a response that wasn't asked for.
"""

import httptools

from inferbus_router.heads import HEAD_END, LINE_END, HeadMemory
from inferbus_router.relay import ResponseHead, read_response_head

_MOST_HEAD_BYTES = 256 * 1024


class ResponseReader:
    """The parser of one connection; one response after the other."""

    head: ResponseHead | None = None
    """Of the running response, once it is there."""
    is_complete = False
    is_reusable = False
    """The connection can serve another request, as far as the response says."""
    _pending = b""
    """What has come of an unfinished head."""
    _head_ended = False
    _status = 0

    def __init__(self) -> None:
        self._parser = httptools.HttpResponseParser(self)
        self._body: list[bytes] = []
        self._memory: HeadMemory[ResponseHead] = HeadMemory()

    def begin(self) -> None:
        """Another request was sent."""
        self.head = None
        self.is_complete = self._head_ended = False

    def feed(self, data: bytes) -> str:
        """Read on; returns what is wrong with it, empty where nothing is."""
        if self.head is not None:
            return self._parse(data)
        head = self._pending + data if self._pending else data.lstrip(LINE_END)
        end = head.find(HEAD_END)
        if end < 0:
            self._pending = head
            if len(head) > _MOST_HEAD_BYTES:
                return "the head of the endpoint's response is too large"
            return self._parse(data)
        if head[9:10] == b"1":
            return self._pass_interim(data, len(data) - len(head) + end + len(HEAD_END))
        self._pending = b""
        problem = self._parse(data)
        if not self._head_ended:
            return problem or "the head of the endpoint's response doesn't end where it should"
        return self._read_head(head[:end]) or problem

    def _read_head(self, head: bytes) -> str:
        read = self._memory.recall(head)
        if read is None:
            try:
                read = read_response_head(self._status, head)
            except ValueError as error:
                return f"the endpoint's response is malformed: {error}"
            self._memory.remember(head, read)
        self.head = read
        return ""

    def _pass_interim(self, data: bytes, size: int) -> str:
        """Pass over an informational response (RFC 9110, 15.2)."""
        self._pending = b""
        problem = self._parse(data[:size])
        self.begin()
        rest = data[size:]
        return problem or (self.feed(rest) if rest else "")

    def take_body(self) -> bytes:
        """What has come of the body since the last call."""
        body = self._body
        if not body:
            return b""
        self._body = []
        return body[0] if len(body) == 1 else b"".join(body)

    def _parse(self, data: bytes) -> str:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            return "the endpoint switched protocols"
        except httptools.HttpParserError as error:
            return f"the endpoint's response is malformed: {error.__context__ or error}"
        return ""

    # What the parser calls.

    def on_message_begin(self) -> None:
        if self.is_complete:
            raise ValueError("a response that was not asked for")

    def on_headers_complete(self) -> None:
        self._head_ended = True
        self._status = self._parser.get_status_code()
        self.is_reusable = self._parser.should_keep_alive()

    def on_body(self, data: bytes) -> None:
        self._body.append(data)

    def on_message_complete(self) -> None:
        if self._status >= 200:
            self.is_complete = True
