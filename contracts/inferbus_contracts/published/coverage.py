"""Which fields of a schema some documents show: what no golden document holds, none protects.

Pure.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from inferbus_contracts.published.references import Schema, resolved

_PYTHON_TYPES: dict[str, type | tuple[type, ...]] = {
    "object": dict,
    "array": list,
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
}


def uncovered_fields(shown: Iterable[tuple[Schema, Any]]) -> list[str]:
    """`<type>.<field>` of every field that no document holds, sorted; (schema, document) pairs.

    A field that several schemas share counts as held wherever one document holds it. What only the
    platform writes (`readOnly`) isn't asked for.
    """
    pairs = list(shown)
    seen = {field for schema, document in pairs for field in _shown(schema, schema, document)}
    every = {field for schema, _ in pairs for field in _fields(schema)}
    return sorted(every - seen)


def _fields(schema: Schema) -> Iterator[str]:
    for item in (schema, *schema.get("$defs", {}).values()):
        for field, described in item.get("properties", {}).items():
            if not described.get("readOnly"):
                yield f"{_name(item)}.{field}"


def _shown(root: Schema, schema: Schema, value: Any) -> Iterator[str]:
    schema = resolved(root, schema)
    for branch in schema.get("anyOf", ()):
        yield from _shown(root, branch, value)
    if not isinstance(value, _PYTHON_TYPES.get(schema.get("type", ""), object)):
        return
    if isinstance(value, list) and "items" in schema:
        for item in value:
            yield from _shown(root, schema["items"], item)
    if isinstance(value, dict):
        yield from _shown_fields(root, schema, value)


def _shown_fields(root: Schema, schema: Schema, value: Mapping[str, Any]) -> Iterator[str]:
    properties = schema.get("properties", {})
    others = schema.get("additionalProperties")
    for name, item in value.items():
        if name in properties:
            yield f"{_name(schema)}.{name}"
            yield from _shown(root, properties[name], item)
        elif isinstance(others, dict):
            yield from _shown(root, others, item)


def _name(schema: Schema) -> str:
    return str(schema["title"])
