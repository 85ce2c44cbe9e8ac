"""The heads of HTTP messages: cutting them up, and not doing it again for the same head.

Nothing here checks syntax: the parser (llhttp, strict) has accepted the same bytes before, so that
lines end in CRLF, a name is directly followed by its colon, and no value holds a line end.
"""

import re
from collections.abc import Iterable
from typing import Generic, Protocol, Self, TypeVar

LINE_END = b"\r\n"
HEAD_END = b"\r\n\r\n"

HOP_BY_HOP = frozenset(
    {
        b"connection",
        b"http2-settings",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    }
)
"""Concern one connection only (RFC 9110, 7.6.1)."""

_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*([0-9]+)", re.IGNORECASE)


def cutter(names: Iterable[bytes]) -> re.Pattern[bytes]:
    """Splits a head at the headers of these names, which are in lower case.

    `split` gives text, name, value, text, name, value, … text: the texts joined are the head
    without those headers. The first line is never taken for a header.
    """
    return re.compile(rb"\r\n(" + b"|".join(sorted(names)) + rb"):([^\r]*)", re.IGNORECASE)


def header_lines(head: bytes) -> list[tuple[bytes, bytes]]:
    """(name in lower case, value) of every header of a head."""
    lines = (line.partition(b":") for line in head.split(LINE_END)[1:])
    return [(name.lower(), value.strip(b" \t")) for name, _, value in lines]


def without_headers(lines: bytes, names: list[bytes]) -> bytes:
    """Header lines, each behind its line end, but for those of these names in lower case."""
    kept = (
        line for line in lines.split(LINE_END)[1:] if line.partition(b":")[0].lower() not in names
    )
    return b"".join(LINE_END + line for line in kept)


class HasLength(Protocol):
    """What a head means, as far as the length of its body matters."""

    @property
    def content_length(self) -> int | None:
        """Bytes; None where the head doesn't say."""
        ...

    def with_length(self, content_length: int) -> Self:
        """The same of a head that differs in nothing but this number."""
        ...


FactsT = TypeVar("FactsT", bound=HasLength)


class HeadMemory(Generic[FactsT]):
    """The last head of a connection and what it means.

    Most peers send the same head again and again, but for the length at most. Invariant: what is
    recalled is what reading the head would give.
    """

    _head = b""
    """The whole head; empty where nothing is remembered."""
    _before = b""
    """The head up to its length; empty where it has none."""
    _after = b""
    _from = 0
    """Where the digits of the length begin,"""
    _behind = 0
    """and how many bytes stand behind them."""
    _facts: FactsT

    def recall(self, head: bytes) -> FactsT | None:
        """What a head means, where it is the last one, maybe but for its length."""
        if head and head == self._head:
            return self._facts
        before = self._before
        if not before or not head.startswith(before) or not head.endswith(self._after):
            return None
        digits = head[self._from : len(head) - self._behind]
        if not digits.isdigit():
            return None
        facts, length = self._facts, int(digits)
        return facts if facts.content_length == length else facts.with_length(length)

    def remember(self, head: bytes, facts: FactsT) -> None:
        """Keep a head that was just read."""
        self._head, self._facts = head, facts
        length = _LENGTH.search(head)
        if length is None:
            self._before = b""
            return
        self._from, end = length.span(1)
        self._behind = len(head) - end
        self._before, self._after = head[: self._from], head[end:]
