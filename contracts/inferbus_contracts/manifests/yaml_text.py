"""Documents as YAML text, for people and for kubectl.

Invariant: the same document gives the same bytes, and any YAML parser reads it back unchanged. Only
what JSON knows is written; a text that could be read as anything but text stands in quotes.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_./-]*( [A-Za-z0-9_./(][A-Za-z0-9_./()',;-]*)*")
_BREAKS = re.compile("[\x7f-\x9f\u2028\u2029\ufeff]")
"""What a YAML parser takes for the end of a line, or refuses, though JSON doesn't."""
_WORDS = frozenset({"true", "false", "yes", "no", "on", "off", "null", "y", "n"})
"""What YAML 1.1 takes for something else than text."""


def yaml_text(documents: Sequence[Mapping[str, Any]], comment: str) -> bytes:
    """Documents below a comment of one line; mappings keep their order."""
    texts = ("".join(f"{line}\n" for line in _lines(document)) for document in documents)
    body = "---\n".join(texts)
    return f"# {comment}\n{body}".encode()


def _lines(value: Any) -> Iterator[str]:
    """A mapping or a list that isn't empty, as lines without a margin."""
    if isinstance(value, Mapping):
        for name, item in value.items():
            yield from _entry(f"{_scalar(name)}:", item, "  ")
    else:
        for item in value:
            yield from _item(item)


def _entry(start: str, item: Any, margin: str) -> Iterator[str]:
    if isinstance(item, Mapping | list | tuple) and item:
        yield start
        yield from (f"{margin}{line}" for line in _lines(item))
    else:
        yield f"{start} {_scalar(item)}"


def _item(item: Any) -> Iterator[str]:
    if isinstance(item, Mapping | list | tuple) and item:
        for index, line in enumerate(_lines(item)):
            yield f"{'  ' if index else '- '}{line}"
    else:
        yield f"- {_scalar(item)}"


def _scalar(value: Any) -> str:
    if isinstance(value, str) and _PLAIN.fullmatch(value) and value.lower() not in _WORDS:
        return value
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    return _BREAKS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
