"""Objects with Kubernetes' semantics: identity, generation, status apart, preconditions.

Invariants: a uid never names two objects; the generation counts changes of what is outside metadata
and status, from 1; a write that changes nothing leaves everything as it was, the revision included.
"""

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from inferbus_contracts.admission.stamps import stamps
from inferbus_contracts.api.objects import Change, Preconditions
from inferbus_contracts.canonical import digest
from inferbus_contracts.envelope import format_time
from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.resources.annotations import DECISION_ID
from inferbus_contracts.resources.kinds import MODEL_ROUTE, kind_of
from inferbus_shared.objects.picture import StoredObject
from inferbus_spec_watcher.policy_fields import (
    Conflict,
    Owners,
    applied_fields,
    merge,
    set_field,
)
from inferbus_spec_watcher.policy_replicas import with_replicas

SCALE_MANAGER = "scale"
STAMP_MANAGER = "spec-watcher"
EXPANDER = "expander"
BUILT_IN = "built-in"
"""Manager of objects that come with the platform."""

HAND_OVER = frozenset({SCALE_MANAGER, STAMP_MANAGER})
"""Managers whose fields every applier may take over."""
_NOT_SPEC = ("apiVersion", "kind", "metadata", "status")


@dataclass(frozen=True, slots=True)
class Written:
    """The object to write, or the same one when nothing changes."""

    object: dict[str, Any]
    change: Change


def spec_of(document: Mapping[str, Any]) -> dict[str, Any]:
    """Everything that the generation counts changes of."""
    return {name: value for name, value in document.items() if name not in _NOT_SPEC}


def check(key: ObjectKey, stored: StoredObject | None, wanted: Preconditions) -> None:
    """Raise `ProblemsError` (CONFLICT, NOT_FOUND or ALREADY_EXISTS) when a condition isn't met."""
    if wanted.absent and stored is not None:
        raise ProblemsError(
            _problem(ErrorCode.ALREADY_EXISTS, key, "it exists already", uid=stored.uid)
        )
    if stored is None:
        if wanted.uid or wanted.generation or wanted.revision:
            raise ProblemsError(not_found(key))
        return
    unmet = wanted.unmet(
        key, uid=stored.uid, generation=stored.generation, revision=stored.revision
    )
    if unmet:
        raise ProblemsError(*unmet)


def not_found(key: ObjectKey) -> Problem:
    """The problem of an object that isn't there."""
    return _problem(
        ErrorCode.NOT_FOUND,
        key,
        "there is no such object",
        remedy=f"`inferbus get {key.kind}` lists what there is",
    )


def apply_document(
    key: ObjectKey,
    stored: StoredObject | None,
    document: Mapping[str, Any],
    manager: str,
    *,
    uid: str,
    now_ms: int,
    force: bool = False,
) -> Written:
    """The object after `manager` applies an admitted `document`; `uid` is used to create it.

    Raises `ProblemsError` (FIELD_OWNED_BY_OTHER) with one problem per contested field.
    """
    if stored is None:
        return Written(_created(document, manager, uid, now_ms), Change.CREATED)
    if _gives_way(key, stored, manager):
        return _replaced(stored, document, manager, now_ms)
    result = merge(
        stored.object,
        owners_of(stored.object),
        document,
        manager,
        force=force,
        yielding=HAND_OVER,
    )
    if result.conflicts:
        raise ProblemsError(*(_contested(key, conflict) for conflict in result.conflicts))
    return _updated(stored, *_stamped(result.object, result.owners, now_ms), manager)


def _gives_way(key: ObjectKey, stored: StoredObject, manager: str) -> bool:
    """Whether what is stored is the platform's offer, which anybody's own replaces.

    What is built in is such an offer, and a rendered ModelRoute: the route that a user applies wins
    whichever came first (ruling "routing").
    """
    if manager in (BUILT_IN, EXPANDER):
        return False
    is_rendered = set(owners_of(stored.object)) <= {EXPANDER, STAMP_MANAGER}
    return is_built_in(stored.object) or (key.kind == MODEL_ROUTE and is_rendered)


def _created(document: Mapping[str, Any], manager: str, uid: str, now_ms: int) -> dict[str, Any]:
    body, owners = _own(document, manager, now_ms)
    body["metadata"] |= {
        "uid": uid,
        "generation": 1,
        "creationTimestamp": format_time(now_ms),
        "managedFields": _managed(owners, manager),
    }
    return body


def _replaced(
    stored: StoredObject, document: Mapping[str, Any], manager: str, now_ms: int
) -> Written:
    """The object as somebody's own: nothing of what it held stays, only who it is."""
    body, owners = _own(document, manager, now_ms)
    identity = ("uid", "creationTimestamp")
    body["metadata"] |= {name: stored.object["metadata"][name] for name in identity}
    if "status" in stored.object:
        body["status"] = stored.object["status"]
    return _updated(stored, body, owners, manager)


def _own(document: Mapping[str, Any], manager: str, now_ms: int) -> tuple[dict[str, Any], Owners]:
    body = copy.deepcopy({name: value for name, value in document.items() if name != "status"})
    return _stamped(body, merge({}, {}, document, manager).owners, now_ms)


def _stamped(body: dict[str, Any], owners: Owners, now_ms: int) -> tuple[dict[str, Any], Owners]:
    """With the fields that the platform itself sets on every object of its kind; they are its own
    whatever an applier wrote."""
    kind = kind_of(body)
    if kind.supporting:
        return body, owners
    resource = kind.model.model_validate(
        {name: value for name, value in body.items() if name != "status"}
    )
    for path, value in applied_fields(stamps(resource, now_ms)).items():
        set_field(body, path, value)
        owners = {name: paths - {path} for name, paths in owners.items()}
        owners[STAMP_MANAGER] = owners.get(STAMP_MANAGER, frozenset()) | {path}
    return body, owners


def _updated(stored: StoredObject, body: dict[str, Any], owners: Owners, manager: str) -> Written:
    old = stored.object
    spec_changed = digest(spec_of(body)) != digest(spec_of(old))
    body["metadata"]["managedFields"] = _managed(owners, last_manager(old))
    body["metadata"]["generation"] = stored.generation + spec_changed
    if digest(body) == digest(old):
        return Written(old, Change.UNCHANGED)
    body["metadata"]["managedFields"] = _managed(owners, manager)
    return Written(body, Change.CONFIGURED)


def scale(stored: StoredObject, role: str, replicas: int, decision_id: str) -> Written:
    """The object with the number of replicas that a decision gave it, or one role of it.

    Raises `KeyError` when it has no such role.
    """
    annotation = {"metadata": {"annotations": {DECISION_ID: decision_id}}}
    result = merge(stored.object, owners_of(stored.object), annotation, SCALE_MANAGER, force=True)
    return _updated(
        stored, with_replicas(result.object, role, replicas), result.owners, SCALE_MANAGER
    )


def set_status(stored: StoredObject, status: Mapping[str, Any]) -> Written:
    """The object with another status; nothing else changes."""
    if digest(stored.object.get("status", {})) == digest(dict(status)):
        return Written(stored.object, Change.UNCHANGED)
    return Written({**stored.object, "status": dict(status)}, Change.CONFIGURED)


def mark_deleted(stored: StoredObject, now_ms: int, grace_period_seconds: int) -> Written:
    """A pod that is to end; marking it again can only shorten its grace period."""
    metadata = stored.object["metadata"]
    known = metadata.get("deletionGracePeriodSeconds")
    if known is not None and known <= grace_period_seconds:
        return Written(stored.object, Change.UNCHANGED)
    marked = metadata | {
        "deletionTimestamp": metadata.get("deletionTimestamp") or format_time(now_ms),
        "deletionGracePeriodSeconds": grace_period_seconds,
    }
    return Written({**stored.object, "metadata": marked}, Change.CONFIGURED)


def owners_of(document: Mapping[str, Any]) -> Owners:
    """Who owns which fields, from `metadata.managedFields`."""
    return {
        str(entry["manager"]): frozenset(entry["fields"])
        for entry in document["metadata"].get("managedFields", [])
    }


def is_built_in(document: Mapping[str, Any]) -> bool:
    """Whether a stored object is the platform's own, untouched by anybody."""
    return set(owners_of(document)) <= {BUILT_IN, STAMP_MANAGER}


def last_manager(document: Mapping[str, Any]) -> str:
    """Who made the last change; it stands in the object, so that a restart announces the same."""
    for entry in document["metadata"].get("managedFields", []):
        if entry.get("last"):
            return str(entry["manager"])
    return ""


def _managed(owners: Owners, last: str) -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = []
    for name in sorted(owners.keys() | ({last} if last else set())):
        entry: dict[str, Any] = {"manager": name, "fields": sorted(owners.get(name, ()))}
        if name == last:
            entry["last"] = True
        if entry["fields"] or name == last:
            entries.append(entry)
    return entries


def _contested(key: ObjectKey, conflict: Conflict) -> Problem:
    return Problem(
        code=ErrorCode.FIELD_OWNED_BY_OTHER,
        message=f"the field belongs to {conflict.manager}, which set it to {conflict.theirs!r}",
        object=str(key),
        field=conflict.path.removeprefix("/").replace("/", "."),
        value=conflict.ours,
        remedy="leave the field out, change it where its owner does, or take it over with --force",
    )


def _problem(
    code: ErrorCode, key: ObjectKey, message: str, *, uid: str | None = None, remedy: str = ""
) -> Problem:
    field = "metadata.uid" if uid else None
    return Problem(
        code=code, message=message, object=str(key), field=field, value=uid, remedy=remedy
    )
