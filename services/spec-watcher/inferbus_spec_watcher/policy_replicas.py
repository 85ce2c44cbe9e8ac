"""Who owns replicas, and where they stand in an object.

A target that a policy scales keeps its number when its manifest is applied again; only a scale
request changes it (DESIGN section 6, "who owns replicas").
"""

import copy
from collections.abc import Iterable, Mapping
from typing import Any

DEFAULT_REPLICAS = 1


def replicas(document: Mapping[str, Any], role: str = "") -> int:
    """The replicas of an object, or of one role of it (then per group).

    Raises `KeyError` when it has no such role.
    """
    holder = _role(document, role) if role else document.get("spec", {})
    value = holder.get("replicas")
    return DEFAULT_REPLICAS if value is None else int(value)


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


def _role(document: Mapping[str, Any], name: str) -> dict[str, Any]:
    for role in document["spec"]["template"]["roles"]:
        if role["name"] == name:
            found: dict[str, Any] = role
            return found
    raise KeyError(name)
