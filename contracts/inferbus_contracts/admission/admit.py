"""Admission: from any document to a normalised object, or to every reason why it can't be one.

Invariant: an admitted object admits to itself. Pure, and the same for command line, folder,
spec-watcher and the objects that expansion makes.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from inferbus_contracts.admission.defaults import with_defaults
from inferbus_contracts.admission.identify import identify, label_of
from inferbus_contracts.admission.rule import judge
from inferbus_contracts.admission.rules import rules_for
from inferbus_contracts.admission.schema import decode, json_type
from inferbus_contracts.canonical import canonical_json
from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.resources.kinds import DEFAULT_NAMESPACE, Kind
from inferbus_contracts.resources.metadata import Resource

MAX_OBJECT_BYTES = 256 * 1024
"""The most canonical JSON an object may have: what one event can carry."""

MAX_DEPTH = 100
"""Levels of nesting; serialisers on the way stop at about 250."""


@dataclass(frozen=True, kw_only=True)
class Admitted:
    """An object that can be stored."""

    kind: Kind
    key: ObjectKey
    object: dict[str, Any]
    """The normalised document: defaults filled in, nulls and `status` left out."""
    resource: Resource
    """The same, typed."""
    warnings: tuple[Problem, ...]
    """What is doubtful; it becomes a condition of the object."""


def admit(document: Mapping[str, Any], *, file: str = "") -> Admitted:
    """Check and normalise one document; `file` is told in problems.

    Raises `ProblemsError` with everything that is wrong at the first stage that fails: form, kind,
    schema, rules, size.
    """
    try:
        plain = _plain(document)
        kind = identify(plain)
    except ProblemsError as error:
        raise ProblemsError(*_placed(error.problems, file, None)) from None
    label = label_of(kind, plain)
    try:
        return _admit(kind, plain, file, label)
    except ProblemsError as error:
        raise ProblemsError(*_placed(error.problems, file, label)) from None


def _admit(kind: Kind, plain: dict[str, Any], file: str, label: str) -> Admitted:
    plain.pop("status", None)
    document = decode(kind.model, plain).to_dict()
    warnings = _set_namespace(kind, document["metadata"])
    normalised = with_defaults(kind, document)
    resource = decode(kind.model, normalised)
    verdict = judge(rules_for(kind.token), resource)
    if verdict.errors:
        raise ProblemsError(*verdict.errors)
    _check_size(normalised)
    return Admitted(
        kind=kind,
        key=kind.key(resource.metadata.name, resource.metadata.namespace),
        object=normalised,
        resource=resource,
        warnings=tuple(_placed((*warnings, *verdict.warnings), file, label)),
    )


def _placed(problems: Iterable[Problem], file: str, label: str | None) -> Iterable[Problem]:
    place = {"file": file or None, "object": label}
    return [problem.model_copy(update=place) for problem in problems]


def _plain(document: Any) -> dict[str, Any]:
    """A copy that holds JSON's types only, whole numbers as integers, as Kubernetes stores them."""
    if not isinstance(document, Mapping):
        message = f"an object is a mapping, not {json_type(document)}"
        raise ProblemsError(_no_document(message, "begin the document with apiVersion and kind"))
    try:
        copied: dict[str, Any] = json.loads(canonical_json(dict(document)), parse_float=_number)
        deepest = _depth(copied)
    except (TypeError, ValueError, RecursionError) as error:
        raise ProblemsError(
            _no_document(
                f"the document holds something that JSON can't: {error}",
                "use strings, numbers, true, false, null, lists and mappings only",
            )
        ) from None
    if deepest > MAX_DEPTH:
        message = f"the document is nested {deepest} levels deep, {MAX_DEPTH} are possible"
        raise ProblemsError(_no_document(message, "write deep values as JSON text"))
    return copied


def _no_document(message: str, remedy: str) -> Problem:
    return Problem(code=ErrorCode.NOT_A_DOCUMENT, message=message, remedy=remedy)


def _depth(value: Any) -> int:
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + max((_depth(item) for item in items), default=0)


def _number(text: str) -> int | float:
    number = float(text)
    return int(number) if number.is_integer() and abs(number) < 2**53 else number


def _set_namespace(kind: Kind, metadata: dict[str, Any]) -> list[Problem]:
    """Fill in the default namespace, or leave out one that means nothing."""
    namespace = metadata.pop("namespace", None)
    if kind.namespaced:
        metadata["namespace"] = namespace or DEFAULT_NAMESPACE
        return []
    if not namespace:
        return []
    return [
        Problem(
            code=ErrorCode.RULE_BROKEN,
            message=f"a {kind.kind} belongs to no namespace; it is left out",
            field="metadata.namespace",
            value=namespace,
            remedy="remove the namespace",
        )
    ]


def _check_size(normalised: dict[str, Any]) -> None:
    size = len(canonical_json(normalised))
    if size > MAX_OBJECT_BYTES:
        raise ProblemsError(
            Problem(
                code=ErrorCode.TOO_LARGE,
                message=f"the object has {size} bytes of JSON, {MAX_OBJECT_BYTES} are possible",
                value=size,
                remedy="move large texts into a ConfigMap or a file that the pods mount",
            )
        )
