"""Label and field selectors: parsed once, then asked of every object.

Field selectors know what the server indexes for a resource; any other field is refused (400).
"""

import re
from collections.abc import Callable, Mapping

from tests.fakes.kubernetes.status import ApiError

Requirement = Callable[[Mapping[str, str]], bool]

_KEY = r"[A-Za-z0-9_./-]+"
_VALUE = r"[A-Za-z0-9_.-]*"
_SET = re.compile(rf"^({_KEY})\s+(in|notin)\s*\(([^)]*)\)$")
_EQUAL = re.compile(rf"^({_KEY})\s*(==|=|!=)\s*({_VALUE})$")
_EXISTS = re.compile(rf"^(!?)\s*({_KEY})$")
_COMMA = re.compile(r",(?![^(]*\))")


def label_requirements(selector: str) -> tuple[Requirement, ...]:
    """Requirements that a label map must all meet. Raises 400 for what cannot be parsed."""
    return tuple(_label(part.strip()) for part in _COMMA.split(selector)) if selector else ()


def _label(text: str) -> Requirement:
    if found := _SET.match(text):
        key, wanted = found[1], frozenset(value.strip() for value in found[3].split(","))
        if found[2] == "in":
            return lambda labels: labels.get(key) in wanted
        return lambda labels: labels.get(key) not in wanted
    if found := _EQUAL.match(text):
        return _equal(found[1], found[2], found[3])
    if found := _EXISTS.match(text):
        key, absent = found[2], bool(found[1])
        return lambda labels: (key in labels) is not absent
    raise ApiError(400, f"unable to parse requirement: found '{text}', expected: a requirement")


def _equal(key: str, operator: str, value: str) -> Requirement:
    if operator == "!=":
        return lambda labels: labels.get(key) != value
    return lambda labels: labels.get(key) == value


def field_requirements(selector: str, supported: frozenset[str]) -> tuple[Requirement, ...]:
    """Requirements on an object's indexed fields; a field that is not indexed is refused (400)."""
    found = []
    for part in selector.split(",") if selector else ():
        operator = next((sign for sign in ("!=", "==", "=") if sign in part), "")
        if not operator:
            raise ApiError(400, f"invalid selector: '{part}'; can't understand '{part}'")
        key, _, value = part.partition(operator)
        if key not in supported:
            raise ApiError(400, f"field label not supported: {key}")
        found.append(_field(key, operator, value))
    return tuple(found)


def _field(key: str, operator: str, value: str) -> Requirement:
    if operator == "!=":
        return lambda fields: fields.get(key, "") != value
    return lambda fields: fields.get(key, "") == value
