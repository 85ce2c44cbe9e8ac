"""The labels of a sample line, as far as a histogram needs them.

Label texts repeat from scrape to scrape, so what one means is remembered. Invariant: two samples of
one series differ in their `le` label alone.
"""

import math
import re
from functools import lru_cache
from typing import NamedTuple

_LABEL = re.compile(
    rb'[ \t]*([a-zA-Z_][a-zA-Z0-9_]*)[ \t]*=[ \t]*"((?:[^"\\]|\\.)*)"[ \t]*(,[ \t]*|\Z)'
)
LONGEST_LABELS_BYTES = 16 * 1024
"""Of one sample; longer ones are not read."""

_REMEMBERED = 16_384
_LONGEST_REMEMBERED_BYTES = 1_024
"""Together with the number: what is remembered stays below some 30 MB, whatever pods send."""


class Labels(NamedTuple):
    """What the label part of a line says."""

    text: bytes
    """As it was written; the same object for the same text, so that it is held once."""
    series: bytes
    """The labels without `le`, as they were written."""
    bound: float | None
    """The value of `le`: the upper bound of a bucket; None where there is none."""


def read_labels(text: bytes) -> Labels:
    """The labels in `text`, from brace to brace; empty text has none.

    Raises `ValueError` when the text breaks the Prometheus text format (0.0.4) or is too long.
    """
    if len(text) <= _LONGEST_REMEMBERED_BYTES:
        return _remembered(text)
    if len(text) > LONGEST_LABELS_BYTES:
        raise ValueError("the labels are too long")
    return _parse(text)


@lru_cache(maxsize=_REMEMBERED)
def _remembered(text: bytes) -> Labels:
    return _parse(text)


def _parse(text: bytes) -> Labels:
    body = text[1:-1]
    kept: list[bytes] = []
    bound: float | None = None
    position = 0
    while position < len(body):
        label = _LABEL.match(body, position)
        if label is None:
            if not body[position:].strip(b" \t"):
                break
            raise ValueError("malformed labels")
        if label[1] == b"le":
            bound = _bound(label[2])
        else:
            kept.append(label[1] + b"=" + label[2])
        position = label.end()
    return Labels(text, b"\0".join(kept), bound)


def _bound(text: bytes) -> float:
    bound = float(text)
    if math.isnan(bound):
        raise ValueError("a bucket has no bound")
    return bound
