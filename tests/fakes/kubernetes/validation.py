"""Whether a custom resource is what its structural schema asks for; CEL rules are not looked at.

Causes are named as the server names them: a field's path, a reason, a message.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import orjson

Cause = tuple[str, str, str]
"""Reason, field, message: as `status.invalid` takes them."""

_TYPES: Mapping[str, Callable[[Any], bool]] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
}
_LIMITS: tuple[tuple[str, Callable[[Any], Any], Callable[[Any, Any], bool], str], ...] = (
    ("minimum", float, lambda size, limit: size >= limit, "should be greater than or equal to"),
    ("maximum", float, lambda size, limit: size <= limit, "should be less than or equal to"),
    ("minLength", len, lambda size, limit: size >= limit, "should be at least this long:"),
    ("maxLength", len, lambda size, limit: size <= limit, "may not be longer than"),
    ("minItems", len, lambda size, limit: size >= limit, "should have at least this many items:"),
    ("maxItems", len, lambda size, limit: size <= limit, "must have at most this many items:"),
)


def faults(value: Any, schema: Mapping[str, Any], path: str = "") -> Iterator[Cause]:
    """Every cause for which the server refuses `value`."""
    if value is None and schema.get("nullable"):
        return
    kind = schema.get("type", "")
    if kind and not _TYPES[kind](value):
        shown = orjson.dumps(value).decode()
        because = f"Invalid value: {shown}: {path} in body must be of type {kind}: {shown}"
        yield "FieldValueTypeInvalid", path, because
        return
    yield from _scalar_faults(value, schema, path)
    if isinstance(value, dict):
        yield from _map_faults(value, schema, path)
    elif isinstance(value, list):
        yield from _list_faults(value, schema, path)


def _scalar_faults(value: Any, schema: Mapping[str, Any], path: str) -> Iterator[Cause]:
    shown = orjson.dumps(value).decode()
    if "enum" in schema and value not in schema["enum"]:
        known = ", ".join(orjson.dumps(each).decode() for each in schema["enum"])
        because = f"Unsupported value: {shown}: supported values: {known}"
        yield "FieldValueNotSupported", path, because
    for name, size, holds, asked in _LIMITS:
        if name in schema and not holds(size(value), schema[name]):
            because = f"Invalid value: {shown}: {path} in body {asked} {schema[name]}"
            yield "FieldValueInvalid", path, because
    is_text = isinstance(value, str)  # a pattern says nothing about the number of int-or-string
    if is_text and "pattern" in schema and not re.search(schema["pattern"], value):
        because = f"Invalid value: {shown}: {path} in body should match '{schema['pattern']}'"
        yield "FieldValueInvalid", path, because


def _map_faults(value: Mapping[str, Any], schema: Mapping[str, Any], path: str) -> Iterator[Cause]:
    for name in schema.get("required", ()):
        if name not in value:
            yield "FieldValueRequired", _at(path, name), "Required value"
    more = schema.get("additionalProperties")
    for name, part in value.items():
        inner = schema.get("properties", {}).get(name, more if isinstance(more, dict) else {})
        yield from faults(part, inner, _at(path, name))


def _at(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _list_faults(value: list[Any], schema: Mapping[str, Any], path: str) -> Iterator[Cause]:
    for index, item in enumerate(value):
        yield from faults(item, schema.get("items", {}), f"{path}[{index}]")
    names = schema.get("x-kubernetes-list-map-keys", ())
    seen: set[bytes] = set()
    for index, item in enumerate(value if names else ()):
        key = {name: item.get(name) for name in names if isinstance(item, dict)}
        shown = orjson.dumps(key)
        if shown in seen:
            yield "FieldValueDuplicate", f"{path}[{index}]", f"Duplicate value: {shown.decode()}"
        seen.add(shown)
