"""Deleting: preconditions, grace, finalizers and propagation, for one object or for many.

An object goes at once unless finalizers or, for a pod on a node, its grace period hold it; then it
is marked, and goes with the write that lifts what held it. Collecting children is a controller's
work, not the server's.
"""

from dataclasses import dataclass
from typing import Any

from tests.fakes.kubernetes.api import NAMESPACES, Api, Target, gone
from tests.fakes.kubernetes.metadata import timestamp
from tests.fakes.kubernetes.status import conflict, success
from tests.fakes.kubernetes.store import Stored

Document = dict[str, Any]

_BY_POLICY = {"Foreground": "foregroundDeletion", "Orphan": "orphan"}
_ANSWERS_OBJECT = frozenset({"Pod", "Service", "Namespace"})


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    """metav1.DeleteOptions, from a body or a query."""

    uid: str = ""
    resource_version: str = ""
    grace_period_seconds: int | None = None
    propagation_policy: str = ""
    dry_run: bool = False

    @classmethod
    def read(cls, body: Document, query: dict[str, str]) -> "DeleteOptions":
        conditions = body.get("preconditions") or {}
        grace = body.get("gracePeriodSeconds", query.get("gracePeriodSeconds"))
        policy = body.get("propagationPolicy") or query.get("propagationPolicy", "")
        return cls(
            uid=conditions.get("uid") or "",
            resource_version=conditions.get("resourceVersion") or "",
            grace_period_seconds=None if grace is None else int(grace),
            propagation_policy=policy,
            dry_run="All" in (body.get("dryRun") or query.get("dryRun", "")),
        )


def delete(api: Api, target: Target, options: DeleteOptions) -> Document:
    """Delete an object; answers it, marked or in its last state, or a Status where the server does.

    Raises 404, and 409 where a precondition does not hold.
    """
    resource = target.resource
    before = api.get(target)
    document = before.document(resource)
    _check(target, document["metadata"], options)
    marked = before.document(resource)
    meta = marked["metadata"]
    _propagate(meta, options.propagation_policy)
    terminating = resource.kind == "Namespace"
    grace_seconds = _grace_seconds(target, document, options)
    first = "deletionTimestamp" not in meta
    if first or grace_seconds < meta.get("deletionGracePeriodSeconds", 0):
        _mark(meta, grace_seconds, first=first, namespace=terminating)
    if terminating:
        marked["status"] = {**marked.get("status", {}), "phase": "Terminating"}
    if options.dry_run:
        return marked
    if gone(marked) and not terminating:
        last = api.remove(resource, before)
        if resource.kind in _ANSWERS_OBJECT:
            return last.document(resource)
        return success(resource.group, resource.plural, target.name, before.uid)
    after = before if marked == document else api.store.put(resource, marked, before)
    if terminating:
        _empty(api, after)
    return after.document(resource)


def _check(target: Target, meta: Document, options: DeleteOptions) -> None:
    held = (
        ("UID", "deleted and then recreated", options.uid, meta["uid"]),
        ("ResourceVersion", "modified", options.resource_version, meta["resourceVersion"]),
    )
    for what, happened, wanted, actual in held:
        if wanted and wanted != actual:
            because = (
                f"the {what} in the precondition ({wanted}) does not match the {what} in record"
                f" ({actual}). The object might have been {happened}"
            )
            raise conflict(target.resource.group, target.resource.kind, target.name, because)


def _propagate(meta: Document, policy: str) -> None:
    if not policy:
        return
    others = [each for each in meta.get("finalizers") or () if each not in _BY_POLICY.values()]
    finalizers = [*others, _BY_POLICY[policy]] if policy in _BY_POLICY else others
    if finalizers:
        meta["finalizers"] = finalizers
    else:
        meta.pop("finalizers", None)


def _grace_seconds(target: Target, document: Document, options: DeleteOptions) -> int:
    """Only pods have grace: none before they are on a node, none after they have ended."""
    if target.resource.kind != "Pod":
        return 0
    spec, status = document.get("spec", {}), document.get("status", {})
    if not spec.get("nodeName") or status.get("phase") in ("Failed", "Succeeded"):
        return 0
    asked = options.grace_period_seconds
    grace: int = spec.get("terminationGracePeriodSeconds", 30) if asked is None else asked
    return 1 if grace < 0 else grace


def _mark(meta: Document, grace_seconds: int, *, first: bool, namespace: bool) -> None:
    meta["deletionTimestamp"] = timestamp(grace_seconds)
    if not namespace:
        meta["deletionGracePeriodSeconds"] = grace_seconds
    if first and "generation" in meta:
        meta["generation"] += 1


def _empty(api: Api, namespace: Stored) -> None:
    """The content goes with its namespace, without grace; what finalizers hold is marked."""
    for resource in api.catalog.namespaced():
        collection = api.store.collection(resource)
        for where, name in list(collection.objects):
            if where == namespace.name and (where, name) in collection.objects:
                target = Target(resource, where, name)
                delete(api, target, DeleteOptions(grace_period_seconds=0))
    left = api.store.get(NAMESPACES, "", namespace.name)
    if left is not None:
        api.empty_namespace(left)
