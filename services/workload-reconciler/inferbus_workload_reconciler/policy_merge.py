"""Differences between what is stored and what is wanted, as JSON merge patches (RFC 7386).

Invariant: a merge patch from here names only what differs in meaning. Absent, null, empty and zero
are alike, as servers and clients in Go leave such fields out, and so are quantities of one value
and the queue that is the default (defect MS_D31).
"""

from collections.abc import Mapping
from typing import Any

from inferbus_workload_reconciler.observed import ObservedPodGroup, ObservedService
from inferbus_workload_reconciler.policy_gang import MANAGED_FIELDS
from inferbus_workload_reconciler.policy_resources import same_quantity
from inferbus_workload_reconciler.workload import ServiceShape

DEFAULT_QUEUE = "default"
"""Where Volcano puts a PodGroup that names no queue."""


def pod_group_changes(stored: ObservedPodGroup, wanted: Mapping[str, Any]) -> dict[str, Any]:
    """What makes a stored PodGroup the wanted one; empty when it is.

    Labels, annotations and fields of others are left alone.
    """
    metadata = wanted["metadata"]
    spec = {
        name: merge_patch(stored.spec.get(name), wanted["spec"].get(name))
        for name in MANAGED_FIELDS
        if not _same_field(name, stored.spec.get(name), wanted["spec"].get(name))
    }
    changes = {
        "metadata": {
            part: lacking
            for part, present in (("labels", stored.labels), ("annotations", stored.annotations))
            if (lacking := missing_entries(present, metadata[part]))
        },
        "spec": spec,
    }
    return {part: change for part, change in changes.items() if change}


def service_changes(stored: ObservedService, shape: ServiceShape) -> dict[str, Any]:
    """What makes a stored service the wanted one; empty when it is.

    ModelServing v0.1 selected by every label of the entry pod, so that its services lose the pod
    when a label changes (modelserving spec 2.6).
    """
    changes: dict[str, Any] = {}
    if labels := missing_entries(stored.labels, shape.labels):
        changes["metadata"] = {"labels": labels}
    if dict(stored.selector) != dict(shape.selector):
        changes["spec"] = {"selector": merge_patch(stored.selector, shape.selector)}
    return changes


def missing_entries(present: Mapping[str, str], wanted: Mapping[str, str]) -> dict[str, str]:
    """Wanted entries that are absent or have another value."""
    return {key: value for key, value in wanted.items() if present.get(key) != value}


def merge_patch(stored: Any, wanted: Any) -> Any:
    """The merge patch of one value: entries that are to go are null, lists are given whole."""
    if not isinstance(wanted, Mapping) or not isinstance(stored, Mapping):
        return wanted
    gone = dict.fromkeys(stored.keys() - wanted.keys())
    kept = {
        key: merge_patch(stored.get(key), value)
        for key, value in wanted.items()
        if stored.get(key) != value
    }
    return {**gone, **kept}


def compact(value: Any) -> Any:
    """A value without what Go's `omitempty` leaves out."""
    if isinstance(value, Mapping):
        items = ((key, compact(item)) for key, item in value.items())
        return {key: item for key, item in items if item not in (None, {}, [], "", 0)}
    if isinstance(value, list | tuple):
        return [compact(item) for item in value]
    return value


def _same_field(name: str, stored: Any, wanted: Any) -> bool:
    if stored == wanted:
        return True
    if name == "queue":
        return (stored or DEFAULT_QUEUE) == (wanted or DEFAULT_QUEUE)
    if name == "minResources":
        return _same_amounts(stored or {}, wanted or {})
    return bool((compact(stored) or None) == (compact(wanted) or None))


def _same_amounts(stored: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    return stored.keys() == wanted.keys() and all(
        same_quantity(stored[name], wanted[name]) for name in wanted
    )
