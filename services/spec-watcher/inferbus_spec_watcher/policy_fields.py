"""Objects as sets of fields: who owns which, and what an apply makes of them.

A field is a path to a leaf: mappings are walked, everything else (lists too) is one value. Paths
are JSON pointers (RFC 6901). Each applier owns the fields of its last document; what it leaves out
the next time goes, unless another owns it too (the idea of Kubernetes' server-side apply, with
lists as atoms).
"""

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

Fields = Mapping[str, Any]
"""Leaf values by path."""

Owners = dict[str, frozenset[str]]
"""The paths of each manager."""

OWNED_METADATA = ("labels", "annotations", "ownerReferences", "finalizers")
_NOT_OWNED = frozenset({"apiVersion", "kind", "metadata", "status"})


@dataclass(frozen=True, slots=True)
class Conflict:
    """A field that another manager owns with another value."""

    path: str
    manager: str
    theirs: Any
    ours: Any


@dataclass(frozen=True, slots=True)
class Merge:
    """An object after an apply; unusable while there are conflicts."""

    object: dict[str, Any]
    owners: Owners
    conflicts: tuple[Conflict, ...] = field(default=())


def applied_fields(document: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that applying `document` claims: labels, annotations, and all but the status."""
    metadata = document.get("metadata", {})
    claimed: dict[str, Any] = {
        "metadata": {name: metadata[name] for name in OWNED_METADATA if metadata.get(name)}
    }
    claimed |= {name: value for name, value in document.items() if name not in _NOT_OWNED}
    return dict(_leaves(claimed, ""))


def merge(
    stored: Mapping[str, Any],
    owners: Owners,
    document: Mapping[str, Any],
    manager: str,
    *,
    force: bool = False,
    yielding: frozenset[str] = frozenset(),
) -> Merge:
    """`stored` after `manager` applies `document`.

    Fields of `yielding` managers are taken over without a conflict.
    """
    claimed = applied_fields(document)
    others = {name: paths for name, paths in owners.items() if name != manager}
    conflicts = (
        ()
        if force
        else tuple(
            Conflict(path, name, theirs, value)
            for path, value in claimed.items()
            for name, paths in others.items()
            if path in paths
            and name not in yielding
            and (theirs := get_field(stored, path)) != value
        )
    )
    result = copy.deepcopy(dict(stored))
    still_owned = frozenset[str]().union(*others.values())
    for path in owners.get(manager, frozenset()) - claimed.keys() - still_owned:
        remove_field(result, path)
    for path, value in claimed.items():
        set_field(result, path, copy.deepcopy(value))
    return Merge(result, _new_owners(stored, others, manager, claimed), conflicts)


def _new_owners(stored: Mapping[str, Any], others: Owners, manager: str, claimed: Fields) -> Owners:
    """Others lose the fields that got another value now."""
    lost = {path for path, value in claimed.items() if get_field(stored, path) != value}
    left = {name: paths - lost for name, paths in others.items()}
    return {name: paths for name, paths in left.items() if paths} | {manager: frozenset(claimed)}


def get_field(document: Mapping[str, Any], path: str) -> Any:
    """The value at a path; None where there is none."""
    value: Any = document
    for part in _parts(path):
        if not isinstance(value, Mapping) or part not in value:
            return None
        value = value[part]
    return value


def set_field(document: dict[str, Any], path: str, value: Any) -> None:
    """Set the value at a path, making mappings on the way."""
    *parents, last = _parts(path)
    for part in parents:
        child = document.get(part)
        if not isinstance(child, dict):
            child = document[part] = {}
        document = child
    document[last] = value


def remove_field(document: dict[str, Any], path: str) -> None:
    """Remove the value at a path, and the mappings that it leaves empty."""
    parts = _parts(path)
    trail = [document]
    for part in parts[:-1]:
        child = trail[-1].get(part)
        if not isinstance(child, dict):
            return
        trail.append(child)
    trail[-1].pop(parts[-1], None)
    for parent, child, part in zip(trail[-2::-1], trail[:0:-1], parts[-2::-1], strict=True):
        if child:
            break
        parent.pop(part)


def _leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping) and (value or not path):
        for name, child in value.items():
            yield from _leaves(child, f"{path}/{_escape(name)}")
    elif not (path == "/metadata" and not value):
        yield path, value


def _escape(part: str) -> str:
    return part.replace("~", "~0").replace("/", "~1")


def _parts(path: str) -> list[str]:
    return [part.replace("~1", "/").replace("~0", "~") for part in path.split("/")[1:]]
