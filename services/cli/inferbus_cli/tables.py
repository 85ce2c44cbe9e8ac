"""Columns of text, as people read them and `awk` cuts them."""

import unicodedata
from collections.abc import Iterable, Sequence

GAP = "   "
NONE = "-"
"""Stands in a cell that has no value, so that columns stay countable."""


def aligned(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A title line and one line per row, columns three spaces apart, each line ended.

    An empty cell becomes `-`; a line break inside a cell becomes a space.
    """
    cells = [list(titles), *([_cell(text) for text in row] for row in rows)]
    widths = [max(map(_width, column)) for column in zip(*cells, strict=True)]
    lines = (
        GAP.join(_padded(text, width) for text, width in zip(row, widths, strict=True)).rstrip()
        for row in cells
    )
    return "".join(f"{line}\n" for line in lines)


def _cell(text: str) -> str:
    return " ".join(text.split()) or NONE


def _padded(text: str, width: int) -> str:
    return text + " " * (width - _width(text))


def _width(text: str) -> int:
    """Columns on a terminal: wide East Asian characters take two, combining ones none."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(sign) else 2 if unicodedata.east_asian_width(sign) in "WF" else 1
        for sign in text
    )
