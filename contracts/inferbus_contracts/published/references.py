"""References inside one JSON Schema. Pure.

Invariant: a schema refers to its own `$defs` alone, as everything that is generated here does.
"""

from collections.abc import Mapping
from typing import Any

Schema = Mapping[str, Any]


def resolved(root: Schema, schema: Schema) -> Schema:
    """What a part of the schema `root` refers to; the part itself when it doesn't refer."""
    target = schema.get("$ref")
    if target is None:
        return schema
    found: Schema = root["$defs"][target.removeprefix("#/$defs/")]
    return found
