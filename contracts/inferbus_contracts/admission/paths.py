"""Paths of fields, such as `spec.backends[0].minReplicas`, written and read in one place.

Invariant: `split_path(join_path(parts)) == parts`. A key that isn't a plain word stands in brackets
and quotes: `metadata.labels["app.kubernetes.io/name"]`.
"""

import json
import re
from collections.abc import Iterable

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_PART = re.compile(
    r'\.?(?P<plain>[A-Za-z_][A-Za-z0-9_-]*)|\[(?P<index>[0-9]+)\]|\[(?P<key>".*?(?<!\\)(?:\\\\)*")\]'
)


def child(path: str, part: str | int) -> str:
    """The path of a field, or an item, of what stands at `path`."""
    if isinstance(part, int):
        return f"{path}[{part}]"
    if _PLAIN.fullmatch(part):
        return f"{path}.{part}" if path else part
    return f"{path}[{json.dumps(part)}]"


def join_path(parts: Iterable[str | int]) -> str:
    """The path through the given keys and indices."""
    path = ""
    for part in parts:
        path = child(path, part)
    return path


def split_path(path: str) -> tuple[str | int, ...]:
    """The keys and indices of a path; raises `ValueError` when it isn't one."""
    parts: list[str | int] = []
    position = 0
    while position < len(path):
        match = _PART.match(path, position)
        if match is None:
            raise ValueError(f"{path!r} is no path of a field")
        parts.append(_part(match))
        position = match.end()
    return tuple(parts)


def _part(match: re.Match[str]) -> str | int:
    if match["plain"] is not None:
        return match["plain"]
    return int(match["index"]) if match["index"] is not None else str(json.loads(match["key"]))
