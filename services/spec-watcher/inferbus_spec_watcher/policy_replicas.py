"""Who owns replicas, and where they stand in an object.

A target that a policy scales keeps its number when its manifest is applied again; only a scale
request changes it (DESIGN section 6, "who owns replicas").
"""

import copy
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_contracts.keys import ObjectKey

DEFAULT_REPLICAS = 1


def replicas(document: Mapping[str, Any], role: str = "") -> int:
    """The replicas of an object, or of one role of it (then per group).

    Raises `KeyError` when it has no such role.
    """
    holder = _role(document, role) if role else document.get("spec", {})
    value = holder.get("replicas")
    return DEFAULT_REPLICAS if value is None else int(value)


def replicas_of(target: ObjectKey, document: Mapping[str, Any]) -> int:
    """The replicas of a scale target; raises `ProblemsError` when there is no such role."""
    try:
        return replicas(document, target.role)
    except KeyError:
        raise ProblemsError(_no_role(target)) from None


def role_index(document: Mapping[str, Any], role: str) -> int:
    """Where a role stands among those of an object that has it."""
    return [one["name"] for one in document["spec"]["template"]["roles"]].index(role)


def with_replicas(document: Mapping[str, Any], role: str, number: int) -> dict[str, Any]:
    """A copy of the object with that many replicas; raises `KeyError` without such a role."""
    changed = copy.deepcopy(dict(document))
    holder = _role(changed, role) if role else changed.setdefault("spec", {})
    holder["replicas"] = number
    return changed


def keeping_replicas(
    document: Mapping[str, Any], stored: Mapping[str, Any], roles: Iterable[str]
) -> dict[str, Any]:
    """`document` with the stored replicas of the scaled `roles` ("" is the object itself)."""
    kept = dict(document)
    for role in roles:
        try:
            kept = with_replicas(kept, role, replicas(stored, role))
        except KeyError:
            continue  # the role came or goes with this document: there is nothing to keep
    return kept


def unheeded_replicas(
    document: Mapping[str, Any], stored: Mapping[str, Any], roles: Iterable[str]
) -> Iterator[Problem]:
    """A warning for each number that the document gives, and that `keeping_replicas` passes over.

    `document` is as it was applied, without defaults: a number that isn't given isn't asked for.
    """
    for role in sorted(roles):
        try:
            holder = _role(document, role) if role else document.get("spec", {})
            asked, kept = holder.get("replicas"), replicas(stored, role)
        except KeyError:
            continue
        if asked is not None and asked != kept:
            yield Problem(
                code=ErrorCode.FIELD_OWNED_BY_OTHER,
                message=f"a policy scales this: {kept} stays",
                field=_field(document, role),
                value=asked,
                remedy="leave it out, or set the policy's bounds",
            )


def _field(document: Mapping[str, Any], role: str) -> str:
    if not role:
        return "spec.replicas"
    return f"spec.template.roles[{role_index(document, role)}].replicas"


def _role(document: Mapping[str, Any], name: str) -> dict[str, Any]:
    for role in document["spec"]["template"]["roles"]:
        if role["name"] == name:
            found: dict[str, Any] = role
            return found
    raise KeyError(name)


def _no_role(key: ObjectKey) -> Problem:
    return Problem(
        code=ErrorCode.NOT_FOUND,
        message=f"the object has no role {key.role!r}",
        object=str(key.owner),
        field="spec.template.roles",
        value=key.role,
        remedy="correct the policy's role name",
    )
