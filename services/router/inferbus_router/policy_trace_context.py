"""Which trace a request belongs to, and what the next hop is told of it (W3C Trace Context 1).

Invariant: a trace that a client began is continued under its id and its sampling decision; what
can't be read is replaced by a trace of our own, with its `tracestate`, and never passed on.
"""

import re
from typing import NamedTuple

from inferbus_router.heads import without_headers

_HEADER = re.compile(rb"\r\ntraceparent:[ \t]*([^\r]*)", re.IGNORECASE)
_VALUE = re.compile(rb"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?[ \t]*")
_SAMPLED = 1
_NO_TRACE, _NO_SPAN = b"0" * 32, b"0" * 16


class TraceParent(NamedTuple):
    """Where a span hangs."""

    trace_id: bytes
    """32 hexadecimal digits."""
    span_id: bytes
    """16 of them."""
    is_sampled: bool


class Trace:
    """The spans of one request; ids are hexadecimal digits."""

    __slots__ = ("forwarded", "is_sampled", "parent_id", "span_id", "trace_id", "upstream_span_id")

    def __init__(self, lines: bytes, ids: int, sampled_if_new: bool) -> None:
        """`lines` are the header lines that go upstream, each behind its line end; of `ids`, 256
        random bits, the new ids are made.
        """
        parent = read_parent(lines)
        own_ids = b"%064x" % ids
        self.span_id, self.upstream_span_id = own_ids[32:48], own_ids[48:]
        if parent is None:
            self.trace_id, self.parent_id = own_ids[:32], b""
            self.is_sampled = sampled_if_new
        else:
            self.trace_id, self.parent_id, self.is_sampled = parent
        self.forwarded = b"%b\r\ntraceparent: 00-%b-%b-0%d" % (
            _without_trace(lines, keep_state=parent is not None),
            self.trace_id,
            self.upstream_span_id,
            self.is_sampled,
        )
        """The lines with what the engine is told."""


def read_parent(lines: bytes) -> TraceParent | None:
    """What `traceparent` says; None where it isn't there, or can't be read."""
    values = _HEADER.findall(lines)
    match = _VALUE.fullmatch(values[0]) if len(values) == 1 else None
    if match is None:
        return None
    version, trace_id, span_id, flags, more = match.groups()
    if version == b"ff" or (version == b"00" and more) or trace_id == _NO_TRACE:
        return None
    if span_id == _NO_SPAN:
        return None
    return TraceParent(trace_id, span_id, bool(int(flags, 16) & _SAMPLED))


def _without_trace(lines: bytes, keep_state: bool) -> bytes:
    lower = lines.lower()
    if b"\r\ntracestate:" in lower and not keep_state:
        return without_headers(lines, [b"traceparent", b"tracestate"])
    return without_headers(lines, [b"traceparent"]) if b"\r\ntraceparent:" in lower else lines
