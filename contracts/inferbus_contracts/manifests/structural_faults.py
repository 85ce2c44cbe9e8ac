"""What makes a schema not structural (apiextensions.k8s.io/v1, "Specifying a structural schema").

The API server refuses such a definition, or accepts it and then neither prunes nor fills in
defaults, so the rules are checked where the schema is made. Invariant: each fault names its place.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

Schema = Mapping[str, Any]

TYPES = frozenset({"object", "array", "string", "integer", "number", "boolean"})
_INT_OR_STRING = "x-kubernetes-int-or-string"
_PRESERVE = "x-kubernetes-preserve-unknown-fields"
_BOTH_TYPES = [{"type": "integer"}, {"type": "string"}]
_JUNCTORS = ("allOf", "anyOf", "oneOf", "not")
_NOT_IN_JUNCTORS = (
    "description",
    "type",
    "default",
    "additionalProperties",
    "nullable",
    _PRESERVE,
    _INT_OR_STRING,
    "x-kubernetes-validations",
)
_ANYWHERE = frozenset(
    {
        *("description", "type", "format", "default", "enum", "pattern", "nullable", "title"),
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
        *("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"),
        *("required", "properties", "additionalProperties", "items", "example"),
        *(_JUNCTORS),
        *(_INT_OR_STRING, _PRESERVE, "x-kubernetes-embedded-resource"),
        *("x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-map-type"),
        "x-kubernetes-validations",
    }
)
"""What a JSONSchemaProps has room for and a structural schema may hold."""


def structural_faults(schema: Schema, path: str = "") -> Iterator[str]:
    """Every fault below a place, one line each."""
    place = path or "schema"
    yield from _shape(schema, place)
    yield from _list_type(schema, place)
    yield from _default(schema, place)
    for name, child in schema.get("properties", {}).items():
        yield from structural_faults(child, f"{path}.{name}")
    for inside in ("items", "additionalProperties"):
        if isinstance(schema.get(inside), Mapping):
            yield from structural_faults(schema[inside], f"{path}[]")


def _shape(schema: Schema, place: str) -> Iterator[str]:
    for name in sorted(set(schema) - _ANYWHERE):
        yield f"{place}: {name} has no place in a structural schema"
    either = schema.get(_INT_OR_STRING)
    if either and "type" in schema:
        yield f"{place}: an int-or-string has no type"
    if not either and not schema.get(_PRESERVE) and schema.get("type") not in TYPES:
        yield f"{place}: has no type"
    if "properties" in schema and "additionalProperties" in schema:
        yield f"{place}: has both properties and additionalProperties"
    if "additionalProperties" in schema and not isinstance(schema["additionalProperties"], Mapping):
        yield f"{place}: additionalProperties is no schema"
    if ("properties" in schema or "additionalProperties" in schema) and (
        schema.get("type") != "object"
    ):
        yield f"{place}: has fields and isn't an object"
    if (schema.get("type") == "array") != ("items" in schema):
        yield f"{place}: arrays, and they alone, have items"
    if isinstance(schema.get("pattern"), str) and _not_compiled(schema["pattern"]):
        yield f"{place}: the pattern {schema['pattern']!r} doesn't compile"
    for name in sorted(set(schema.get("required", ())) - set(schema.get("properties", {}))):
        yield f"{place}: {name} is required and isn't a property"
    yield from _junctors(schema, place)


def _not_compiled(pattern: str) -> bool:
    try:
        re.compile(pattern)
    except re.error:
        return True
    return False


def _junctors(schema: Schema, place: str) -> Iterator[str]:
    if schema.get(_INT_OR_STRING) and schema.get("anyOf") == _BOTH_TYPES:
        schema = {name: value for name, value in schema.items() if name != "anyOf"}
    for junctor in _JUNCTORS:
        branches = schema.get(junctor, ())
        for branch in [branches] if isinstance(branches, Mapping) else branches:
            for name in _NOT_IN_JUNCTORS:
                if name in branch:
                    yield f"{place}: {name} stands in {junctor}"


def _list_type(schema: Schema, place: str) -> Iterator[str]:
    kind, keys = schema.get("x-kubernetes-list-type"), schema.get("x-kubernetes-list-map-keys", [])
    if kind is not None and schema.get("type") != "array":
        yield f"{place}: only an array has a list type"
    if (kind == "map") != bool(keys):
        yield f"{place}: lists that are maps, and they alone, have keys"
    item = schema.get("items", {})
    for key in keys:
        field = item.get("properties", {}).get(key)
        if field is None or field.get("type") not in ("string", "integer", "boolean"):
            yield f"{place}: the key {key} is no scalar field of the items"
        elif key not in item.get("required", ()) and "default" not in field:
            yield f"{place}: the key {key} is neither required nor has it a default"
    if schema.get("x-kubernetes-map-type") is not None and schema.get("type") != "object":
        yield f"{place}: only an object has a map type"


def _default(schema: Schema, place: str) -> Iterator[str]:
    if "default" not in schema:
        return
    value = schema["default"]
    wanted = {
        "object": Mapping,
        "array": list,
        "string": str,
        "integer": int,
        "number": int | float,
        "boolean": bool,
    }.get(schema.get("type", ""), int | str)
    if not isinstance(value, wanted) or (isinstance(value, bool) and wanted is not bool):
        yield f"{place}: the default {value!r} is of another type"
    if isinstance(value, Mapping):
        for name in sorted(set(value) - set(schema.get("properties", {}))):
            yield f"{place}: the default holds {name}, which isn't a property"
    if "enum" in schema and value not in schema["enum"]:
        yield f"{place}: the default {value!r} isn't among its values"
