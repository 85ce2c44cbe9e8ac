"""The heads of HTTP messages as lines.

Nothing here checks syntax: the parser (llhttp, strict) has accepted the same bytes before, so that
lines end in CRLF, a name is directly followed by its colon, and no value holds a line end.
"""

import re
from collections.abc import Iterable

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
