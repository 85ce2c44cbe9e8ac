"""Where the values of a JSON object stand in its bytes, so that one can be replaced in place.

Nothing here validates: the bytes are known to be one valid JSON value (RFC 8259). Invariant: the
spans of `top_level_spans` are those of the object's own members, in their order, whatever the
nested values and the texts hold.
"""

import json
import re
from collections.abc import Iterator

Span = tuple[int, int]

_SPACE = re.compile(rb"[ \t\r\n]*")
_MARK = re.compile(rb'["\[\]{}]')
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_SCALAR = re.compile(rb"[^\s,\]}]+")
_QUOTE, _BACKSLASH = 0x22, 0x5C
_PLAIN_SEARCHES = 16
_OPENING, _CLOSING = b"[{", b"]}"


def top_level_spans(raw: bytes, start: int = 0) -> Iterator[tuple[str, Span]]:
    """(name, span of the value) of each member of the object that begins at or after `start`."""
    position = _skip_space(raw, _skip_space(raw, start) + 1)
    while raw[position] == _QUOTE:
        name_end = _string_end(raw, position)
        name = _name(raw[position:name_end])
        value_start = _skip_space(raw, _skip_space(raw, name_end) + 1)
        value_end = _value_end(raw, value_start)
        yield name, (value_start, value_end)
        after = _skip_space(raw, value_end)
        if raw[after : after + 1] != b",":
            return
        position = _skip_space(raw, after + 1)


def item_spans(raw: bytes, start: int) -> Iterator[Span]:
    """The span of each item of the array that begins at `start`."""
    position = _skip_space(raw, start + 1)
    while raw[position : position + 1] != b"]":
        end = _value_end(raw, position)
        yield position, end
        after = _skip_space(raw, end)
        if raw[after : after + 1] != b",":
            return
        position = _skip_space(raw, after + 1)


def may_spell_otherwise(raw: bytes) -> bool:
    """True where an ASCII letter or underscore may be written as an escape, e.g. `\\u006d`.

    Only then can a member's name stand in the bytes in another form than its own.
    """
    return b"\\u00" in raw and any(
        escape in raw for escape in (b"\\u004", b"\\u005", b"\\u006", b"\\u007")
    )


def splice(raw: bytes, edits: list[tuple[Span, bytes]]) -> bytes:
    """`raw` with each span replaced; the spans don't overlap. `raw` itself where there are none."""
    if not edits:
        return raw
    if len(edits) == 1:
        ((start, end), replacement) = edits[0]
        return raw[:start] + replacement + raw[end:]
    parts = []
    position = 0
    for (start, end), replacement in sorted(edits):
        parts.append(raw[position:start])
        parts.append(replacement)
        position = end
    parts.append(raw[position:])
    return b"".join(parts)


def first_member_position(raw: bytes, start: int = 0) -> int:
    """Where a new first member can be inserted: right after the object's brace."""
    return _skip_space(raw, start) + 1


def _skip_space(raw: bytes, position: int) -> int:
    match = _SPACE.match(raw, position)
    assert match
    return match.end()


def _string_end(raw: bytes, start: int) -> int:
    """Behind the closing quote of the string whose opening quote is at `start`.

    Most texts have few escaped quotes, and then a plain search is a hundred times faster than a
    pattern.
    """
    end = start
    for _ in range(_PLAIN_SEARCHES):
        end = raw.index(b'"', end + 1)
        if raw[end - 1] != _BACKSLASH or not _is_escaped(raw, end):
            return end + 1
    match = _STRING.match(raw, start)
    assert match
    return match.end()


def _is_escaped(raw: bytes, position: int) -> bool:
    """An odd number of backslashes stands before it."""
    first = position
    while raw[first - 1] == _BACKSLASH:
        first -= 1
    return bool((position - first) % 2)


def _name(text: bytes) -> str:
    name: str = json.loads(text) if _BACKSLASH in text else text[1:-1].decode()
    return name


def _value_end(raw: bytes, start: int) -> int:
    first = raw[start]
    if first == _QUOTE:
        return _string_end(raw, start)
    if first not in _OPENING:
        match = _SCALAR.match(raw, start)
        assert match
        return match.end()
    depth = 0
    position = start
    while True:
        mark = _MARK.search(raw, position)
        assert mark
        byte = raw[mark.start()]
        if byte == _QUOTE:
            position = _string_end(raw, mark.start())
            continue
        depth += 1 if byte in _OPENING else -1
        position = mark.end()
        if not depth:
            return position
