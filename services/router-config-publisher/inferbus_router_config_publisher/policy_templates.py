"""The labels that a workload's pods will have, read from its spec.

A workload without replicas has no pods to select, and its demand must reach its scale target all
the same: that is what starts the first replica.

Invariant: a template's labels are those of the pods that serve in the first group (modelserving
spec 2.2, llmaz spec 2.5), with the template's own labels on top; labels that hold a revision are
left out, because they aren't known before there is a pod.
"""

from collections.abc import Mapping
from typing import Any

from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.resources import kinds
from inferbus_contracts.resources.annotations import NAMING
from inferbus_router_config_publisher.policy_pods import (
    GROUPS_GROUP_INDEX,
    GROUPS_NAME,
    GROUPS_WORKER_INDEX,
    SERVING_ENTRY,
    SERVING_GROUP_NAME,
    SERVING_NAME,
    SERVING_ROLE,
    SERVING_ROLE_ID,
)

WORKLOAD_KINDS = frozenset({kinds.MODEL_SERVING, kinds.LEADER_WORKER_SET})

Labels = dict[str, str]


def template_labels(key: ObjectKey, document: Mapping[str, Any]) -> dict[str, Labels]:
    """Labels by role; a LeaderWorkerSet has one role, the empty one.

    What the document lacks or has in another form than expected contributes nothing: it is no
    reason to keep other workloads from being routed.
    """
    spec = _mapping(document, "spec")
    if key.kind == kinds.LEADER_WORKER_SET:
        return {"": _group_labels(key.name, _mapping(spec, "leaderWorkerTemplate"))}
    annotations = _mapping(_mapping(document, "metadata"), "annotations")
    render = _leader_labels if NAMING in annotations else _role_labels
    roles = _mapping(spec, "template").get("roles")
    return {
        role["name"]: render(key.name, role)
        for role in (roles if isinstance(roles, list) else ())
        if isinstance(role, Mapping) and isinstance(role.get("name"), str)
    }


def _role_labels(workload: str, role: Mapping[str, Any]) -> Labels:
    reserved = {
        SERVING_NAME: workload,
        SERVING_GROUP_NAME: f"{workload}-0",
        SERVING_ROLE: role["name"],
        SERVING_ROLE_ID: f"{role['name']}-0",
        SERVING_ENTRY: "true",
    }
    return reserved | _labels_of(_mapping(role, "entryTemplate"))


def _leader_labels(workload: str, role: Mapping[str, Any]) -> Labels:
    """Of the one role of a ModelServing that stands in for a LeaderWorkerSet."""
    template = {"leaderTemplate": role.get("entryTemplate")}
    return {SERVING_NAME: workload, **_group_labels(workload, template)}


def _group_labels(workload: str, template: Mapping[str, Any]) -> Labels:
    """A group without a leader template is led by a pod of the worker template."""
    reserved = {GROUPS_NAME: workload, GROUPS_GROUP_INDEX: "0", GROUPS_WORKER_INDEX: "0"}
    leader = _mapping(template, "leaderTemplate") or _mapping(template, "workerTemplate")
    return reserved | _labels_of(leader)


def _labels_of(pod_template: Mapping[str, Any]) -> Labels:
    labels = _mapping(_mapping(pod_template, "metadata"), "labels")
    return {str(name): str(value) for name, value in labels.items()}


def _mapping(holder: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = holder.get(name)
    return value if isinstance(value, Mapping) else {}
