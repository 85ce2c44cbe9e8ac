"""What a server stores of an object, judged by the structural schema of its kind.

A server drops fields that its schema doesn't have and fills in those that have a default. What is
wanted is compared with what is stored only after the same has been done to it; otherwise every look
would find a difference that no write can mend (defect MS_D31).

Invariant: `stored_form` is idempotent, and without a schema it changes nothing.
"""

from collections.abc import Mapping
from typing import Any

Schema = Mapping[str, Any]


def spec_schema(definition: Mapping[str, Any], version: str) -> Schema | None:
    """The schema of `spec` in a CustomResourceDefinition; None where that version isn't served."""
    for one in (definition.get("spec") or {}).get("versions") or ():
        if one.get("name") == version and one.get("served"):
            root = (one.get("schema") or {}).get("openAPIV3Schema") or {}
            found: Schema | None = (root.get("properties") or {}).get("spec")
            return found
    return None


def stored_form(value: Any, schema: Schema | None) -> Any:
    """A value as a server with this schema stores it."""
    if schema is None:
        return value
    if isinstance(value, Mapping):
        return _stored_mapping(value, schema)
    if isinstance(value, list | tuple):
        return [stored_form(item, schema.get("items")) for item in value]
    return value


def _stored_mapping(value: Mapping[str, Any], schema: Schema) -> dict[str, Any]:
    properties: Mapping[str, Schema] = schema.get("properties") or {}
    others = schema.get("additionalProperties")
    keeps = bool(others) or bool(schema.get("x-kubernetes-preserve-unknown-fields"))
    open_ = others if isinstance(others, Mapping) else None
    stored = {
        key: stored_form(item, properties.get(key, open_))
        for key, item in value.items()
        if key in properties or keeps
    }
    for key, one in properties.items():
        if "default" in one and key not in stored:
            stored[key] = stored_form(one["default"], one)
    return stored
