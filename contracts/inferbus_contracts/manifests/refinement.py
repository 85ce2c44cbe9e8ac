"""What a cluster is told of a part of a resource beyond the types of its fields.

A model says what one field may hold. A refinement adds what the API server can check besides: the
rules of admission, as far as they can be said in a schema or in CEL of Kubernetes 1.27, and how
lists are merged. Invariant: a refinement refuses nothing that admission accepts.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Schema = dict[str, Any]


@dataclass(frozen=True)
class CelRule:
    """One rule; `message` is what its author is told, beside the path of where it stands."""

    rule: str
    message: str

    def as_validation(self) -> dict[str, str]:
        """One item of `x-kubernetes-validations`."""
        return {"rule": " ".join(self.rule.split()), "message": self.message}


@dataclass(frozen=True, kw_only=True)
class Refinement:
    """Additions to the schema of one model, wherever it stands."""

    fields: Mapping[str, Schema] = field(default_factory=dict)
    """Merged into the schemas of fields, by their names in documents."""
    required: tuple[str, ...] = ()
    rules: tuple[CelRule, ...] = ()
    atomic: bool = False
    """Applied as a whole: an owner of one field owns all."""

    def applied_to(self, schema: Schema) -> Schema:
        """The schema of an object, refined."""
        additions: Schema = {"properties": dict(self.fields)} if self.fields else {}
        if self.required:
            additions["required"] = list(self.required)
        if self.atomic:
            additions["x-kubernetes-map-type"] = "atomic"
        if self.rules:
            additions["x-kubernetes-validations"] = [rule.as_validation() for rule in self.rules]
        return merged(schema, additions)


def merged(schema: Mapping[str, Any], additions: Mapping[str, Any]) -> Schema:
    """Mappings are merged, lists of what is required or validated are joined, all else replaced."""
    result = dict(schema)
    for name, value in additions.items():
        before = result.get(name)
        if isinstance(before, Mapping) and isinstance(value, Mapping):
            result[name] = merged(before, value)
        elif isinstance(before, list) and name in ("required", "x-kubernetes-validations"):
            result[name] = [*before, *(item for item in value if item not in before)]
        else:
            result[name] = value
    return result


def merged_by(key: str) -> Schema:
    """A list whose items are told apart by one of their fields, and belong to who wrote them."""
    return {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [key]}
