"""The first place where two JSON documents differ, in words. Pure."""

from typing import Any

from inferbus_contracts.errors import shorten

_ABSENT = object()


def first_difference(old: Any, new: Any, path: str = "") -> str:
    """E.g. `spec.replicas is 1, was absent`; empty when the documents are equal."""
    if isinstance(old, dict) and isinstance(new, dict):
        for name in sorted({*old, *new}):
            place = f"{path}.{name}" if path else name
            found = first_difference(old.get(name, _ABSENT), new.get(name, _ABSENT), place)
            if found:
                return found
        return ""
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        pairs = enumerate(zip(old, new, strict=True))
        inside = (first_difference(one, other, f"{path}[{index}]") for index, (one, other) in pairs)
        return next(filter(None, inside), "")
    if old == new and type(old) is type(new):
        return ""
    return f"{path or 'the document'} is {_told(new)}, was {_told(old)}"


def _told(value: Any) -> str:
    return "absent" if value is _ABSENT else shorten(value, 60)
