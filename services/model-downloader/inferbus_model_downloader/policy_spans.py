"""Which bytes of a file are there, and in which pieces the rest is fetched.

Invariant: what is done and what is missing are disjoint and together cover the file exactly.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple


class Span(NamedTuple):
    """The bytes from `start` up to, not including, `stop`; 0 ≤ start < stop."""

    start: int
    stop: int

    @property
    def length(self) -> int:
        """Bytes."""
        return self.stop - self.start


def merged(spans: Iterable[Span]) -> list[Span]:
    """The same bytes as few spans as possible, in order; they may overlap and touch."""
    result: list[Span] = []
    for span in sorted(spans):
        if result and span.start <= result[-1].stop:
            result[-1] = Span(result[-1].start, max(result[-1].stop, span.stop))
        else:
            result.append(span)
    return result


def missing(size_bytes: int, done: Iterable[Span]) -> list[Span]:
    """What a file of `size_bytes` lacks when `done` is there; spans beyond its end don't count."""
    gaps: list[Span] = []
    reached = 0
    for span in merged(done):
        if span.start >= size_bytes:
            break
        if span.start > reached:
            gaps.append(Span(reached, span.start))
        reached = max(reached, span.stop)
    if reached < size_bytes:
        gaps.append(Span(reached, size_bytes))
    return gaps


def chunks(spans: Iterable[Span], chunk_bytes: int) -> Iterator[Span]:
    """The same bytes in pieces of at most `chunk_bytes` (> 0), each fetched with one request."""
    for span in spans:
        for start in range(span.start, span.stop, chunk_bytes):
            yield Span(start, min(start + chunk_bytes, span.stop))


def total_bytes(spans: Iterable[Span]) -> int:
    """How many bytes the spans hold together; they must not overlap."""
    return sum(span.length for span in spans)
