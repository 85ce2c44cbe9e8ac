"""Objects as sets of fields: who owns which, and what an apply makes of them.

A field is a path to a leaf: mappings are walked, everything else (lists too) is one value. Paths
are JSON pointers (RFC 6901). Each applier owns the fields of its last document; what it leaves out
the next time goes, unless another owns it too (the idea of Kubernetes' server-side apply, with
lists as atoms). An empty mapping asks for a mapping, whatever others put into it.

Invariant: without force, no apply changes or removes what another manager owns.
"""

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from inferbus_contracts.canonical import canonical_json

Fields = Mapping[str, Any]
"""Leaf values by path."""

Owners = dict[str, frozenset[str]]
"""The paths of each manager."""

OWNED_METADATA = ("labels", "annotations", "ownerReferences", "finalizers")
_NOT_OWNED = frozenset({"apiVersion", "kind", "metadata", "status"})


@dataclass(frozen=True, slots=True)
class Conflict:
    """A field that another manager owns with another value, or fields of its inside that field."""

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
    opposing = {} if force else {n: paths for n, paths in others.items() if n not in yielding}
    conflicts = tuple(_conflicts(stored, opposing, claimed, document))
    result = copy.deepcopy(dict(stored))
    kept = frozenset[str](claimed).union(*others.values())
    for path in owners.get(manager, frozenset()) - kept:
        remove_field(result, path, kept)
    for path, value in claimed.items():
        if not _is_fulfilled(get_field(result, path), value):
            set_field(result, path, copy.deepcopy(value))
    left = {name: _unchanged(paths, stored, result) for name, paths in others.items()}
    own = {manager: frozenset(claimed)}
    return Merge(result, {name: paths for name, paths in left.items() if paths} | own, conflicts)


def _conflicts(
    stored: Mapping[str, Any], others: Owners, claimed: Fields, document: Mapping[str, Any]
) -> Iterator[Conflict]:
    told: set[tuple[str, str]] = set()
    for path, value in claimed.items():
        place = _replaced_place(stored, path, value)
        if place is None:
            continue
        for name, paths in others.items():
            if (place, name) not in told and _owns_any(paths, place):
                told.add((place, name))
                theirs, ours = get_field(stored, place), get_field(document, place)
                yield Conflict(place, name, theirs, ours)


def _replaced_place(stored: Mapping[str, Any], path: str, value: Any) -> str | None:
    """Where a value has to go so that `value` can stand at `path`: there, or on the way to it."""
    found: Any = stored
    place = ""
    for part in _parts(path):
        if not isinstance(found, Mapping):
            return place
        if part not in found:
            return None
        found = found[part]
        place += f"/{_escape(part)}"
    return None if _is_fulfilled(found, value) else place


def _is_fulfilled(found: Any, value: Any) -> bool:
    return _same(found, value) or (value == {} and isinstance(found, Mapping))


def _same(one: Any, other: Any) -> bool:
    """As JSON: in Python, true equals 1."""
    return bool(one == other) and canonical_json(one) == canonical_json(other)


def _owns_any(paths: frozenset[str], place: str) -> bool:
    return place in paths or any(path.startswith(f"{place}/") for path in paths)


def _unchanged(
    paths: frozenset[str], stored: Mapping[str, Any], result: Mapping[str, Any]
) -> frozenset[str]:
    """Of another's paths those that it keeps: their values stayed, as it sees them."""
    return frozenset(
        path
        for path in paths
        if _same(before := get_field(stored, path), after := get_field(result, path))
        or (isinstance(before, Mapping) and isinstance(after, Mapping))
    )


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


def remove_field(document: dict[str, Any], path: str, kept: frozenset[str] = frozenset()) -> None:
    """Remove the value at a path, and the mappings that it leaves empty, but none of `kept`.

    A mapping that has fields stays: they are others'.
    """
    parts = _parts(path)
    trail = [document]
    for part in parts[:-1]:
        child = trail[-1].get(part)
        if not isinstance(child, dict):
            return
        trail.append(child)
    if isinstance(value := trail[-1].get(parts[-1]), dict) and value:
        return
    trail[-1].pop(parts[-1], None)
    for parent, child, part in zip(trail[-2::-1], trail[:0:-1], parts[-2::-1], strict=True):
        path = path.rpartition("/")[0]
        if child or path in kept:
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
