"""Objects and replies as YAML or JSON, and what is read out of them."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import yaml

_Dumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


def as_yaml(value: Any) -> str:
    """YAML in the order that `value` has."""
    text: str = yaml.dump(
        value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, default_flow_style=False
    )
    return text


def as_json(value: Any) -> str:
    """Indented JSON that ends with a line break."""
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def as_line(value: Any) -> str:
    """JSON on one line, for streams of documents."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n"


def listed(documents: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Several objects as one document that `apply` takes."""
    return {"apiVersion": "v1", "kind": "List", "items": list(documents)}


def presentable(document: Mapping[str, Any]) -> dict[str, Any]:
    """An object in the order people expect, without the bookkeeping of field owners."""
    metadata = {
        name: value for name, value in document["metadata"].items() if name != "managedFields"
    }
    first = {"apiVersion": document["apiVersion"], "kind": document["kind"], "metadata": metadata}
    last = {"status": document["status"]} if "status" in document else {}
    rest = {name: value for name, value in document.items() if name not in (*first, "status")}
    return first | rest | last


def at(document: Mapping[str, Any], path: str) -> Any:
    """The value at a dotted path; None where there is none."""
    value: Any = document
    for part in path.split("."):
        if not isinstance(value, Mapping):
            return None
        value = value.get(part)
    return value


def condition(document: Mapping[str, Any], type_: str) -> Mapping[str, Any] | None:
    """One condition of an object; None where it has none of that type."""
    for one in at(document, "status.conditions") or ():
        if one.get("type") == type_:
            found: Mapping[str, Any] = one
            return found
    return None
