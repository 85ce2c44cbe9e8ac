"""Which kind a document is of, and which object of that kind.

Invariant: nothing is guessed. A document without apiVersion, kind or name is no object.
"""

from collections.abc import Mapping
from typing import Any

from inferbus_contracts.admission.rule import told_value
from inferbus_contracts.admission.schema import json_type, nearest
from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_contracts.resources.kinds import KINDS, Kind, find_kind


def identify(document: Mapping[str, Any]) -> Kind:
    """The kind of a document; raises `ProblemsError` when it is missing or not known."""
    missing = [
        problem
        for field in ("apiVersion", "kind")
        for problem in _not_a_word(field, document.get(field))
    ]
    if missing:
        raise ProblemsError(*missing)
    api_version, name = document["apiVersion"], document["kind"]
    kind = find_kind(api_version, name)
    if kind is None:
        raise ProblemsError(_unknown_kind(api_version, name))
    return kind


def label_of(kind: Kind, document: Mapping[str, Any]) -> str:
    """`kind/namespace/name` as far as the document tells it, for problems."""
    metadata = document.get("metadata")
    named = metadata if isinstance(metadata, Mapping) else {}
    namespace = named.get("namespace")
    return str(kind.key(str(named.get("name", "?")), namespace and str(namespace)))


def _not_a_word(field: str, value: Any) -> list[Problem]:
    if isinstance(value, str) and value:
        return []
    if value is None or value == "":
        return [
            Problem(
                code=ErrorCode.MISSING_FIELD,
                message="a required field is missing",
                field=field,
                remedy=f"add {field}",
            )
        ]
    return [
        Problem(
            code=ErrorCode.WRONG_TYPE,
            message=f"should be a string, not {json_type(value)}",
            field=field,
            value=told_value(value),
            remedy="put the value in quotes",
        )
    ]


def _unknown_kind(api_version: str, name: str) -> Problem:
    same = [kind for kind in KINDS.values() if kind.kind == name]
    known = {f"{kind.kind} ({kind.api_version})": kind for kind in KINDS.values()}
    if same:
        places = " or ".join(kind.api_version for kind in same)
        return Problem(
            code=ErrorCode.UNKNOWN_KIND,
            message=f"there is no {name} in {api_version}",
            field="apiVersion",
            value=told_value(api_version),
            remedy=f"write {places}",
        )
    near = nearest(name, [kind.kind for kind in KINDS.values()])
    hint = f"did you mean {near}? " if near else ""
    return Problem(
        code=ErrorCode.UNKNOWN_KIND,
        message="this kind is not known",
        field="kind",
        value=f"{told_value(name)} ({told_value(api_version)})",
        remedy=f"{hint}known kinds: {', '.join(sorted(known))}",
    )
