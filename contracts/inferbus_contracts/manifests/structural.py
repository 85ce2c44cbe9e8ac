"""Structural schemas (apiextensions.k8s.io/v1) from the typed models.

Kubernetes demands that every field has one type that stands outside of anyOf, that nothing is
referred to, and that a field holds known fields or any, never a closed set. Invariant: a document
that the model reads is read by the schema, but for decimals where Kubernetes knows integers and
text alone (quantities).
"""

import re
from collections.abc import Mapping

from pydantic import BaseModel

from inferbus_contracts.manifests.forms import QUANTITY
from inferbus_contracts.manifests.refinement import Refinement, Schema
from inferbus_contracts.published.schemas import DURATION, UntitledFields

PRESERVE = "x-kubernetes-preserve-unknown-fields"
INT_OR_STRING = "x-kubernetes-int-or-string"

_KEPT = (
    "description",
    "type",
    "format",
    "default",
    "enum",
    "pattern",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
    "required",
)
_INT32 = 2**31 - 1
_BOTH_TYPES = [{"type": "integer"}, {"type": "string"}]
_REFERENCE = re.compile(r"\s*\([^()]*\b(?:ruling|rulings|spec|defect|defects)\b[^()]*\)")
_BLANKS = re.compile(r"\s+")


def structural_schema(
    model: type[BaseModel], refinements: Mapping[type[BaseModel], Refinement]
) -> Schema:
    """The schema of a part of a resource; refinements are by model."""
    document = model.model_json_schema(by_alias=True, schema_generator=UntitledFields)
    by_title = {part.__name__: refinement for part, refinement in refinements.items()}
    return _Walk(document.get("$defs", {}), by_title).schema(document)


def explained(text: str) -> str:
    """A docstring as `kubectl explain` shows it: one paragraph, without references to sources."""
    plain = _REFERENCE.sub("", text).replace("`", "")
    return _BLANKS.sub(" ", plain).strip()


class _Walk:
    """One document of JSON Schema, its references followed."""

    def __init__(self, parts: Mapping[str, Schema], refinements: Mapping[str, Refinement]) -> None:
        self._parts = parts
        self._refinements = refinements

    def schema(self, node: Schema) -> Schema:
        """A node as a structural schema."""
        node = self._resolved(node)
        if node.get(INT_OR_STRING):
            return _int_or_string(node)
        result = {name: node[name] for name in _KEPT if name in node}
        if "description" in result:
            result["description"] = explained(result["description"])
        if result.get("type") == "integer":
            result["format"] = "int32" if node.get("maximum", 2**63) <= _INT32 else "int64"
        if result.get("format") == "duration":
            del result["format"]
            result |= DURATION
        result |= self._inside(node)
        refinement = self._refinements.get(node.get("title", ""))
        return refinement.applied_to(result) if refinement is not None else result

    def _inside(self, node: Schema) -> Schema:
        if "properties" in node:
            return {
                "properties": {name: self.schema(at) for name, at in node["properties"].items()}
            }
        if "items" in node:
            return {"items": self.schema(node["items"])}
        values = node.get("additionalProperties", False)
        if values is True or "type" not in node:
            return {PRESERVE: True}
        return {"additionalProperties": self.schema(values)} if values else {}

    def _resolved(self, node: Schema) -> Schema:
        """Without references, and without null: where it is written, the field is left out."""
        node = dict(node)
        if node.get("default", ...) is None:
            del node["default"]
        if INT_OR_STRING in node:
            return node
        for choice in node.pop("anyOf", ()):
            if choice.get("type") != "null":
                node = self._resolved(choice) | node
        reference = node.pop("$ref", "")
        if not reference:
            return node
        return self._resolved(self._parts[reference.rpartition("/")[2]]) | node


def _int_or_string(node: Schema) -> Schema:
    """Bounds and forms stand beside the two types, where Kubernetes wants them.

    What has no form of its own is a quantity; anything else counts in 32 bits.
    """
    outside: Schema = {name: node[name] for name in ("description", "default") if name in node}
    if "description" in outside:
        outside["description"] = explained(outside["description"])
    for choice in node["anyOf"]:
        outside |= {name: value for name, value in choice.items() if name != "type"}
    if outside.setdefault("pattern", QUANTITY) != QUANTITY:
        outside["maximum"] = _INT32
    return {**outside, "anyOf": _BOTH_TYPES, INT_OR_STRING: True}
