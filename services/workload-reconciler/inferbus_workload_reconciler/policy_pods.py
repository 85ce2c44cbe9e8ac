"""Pods and services as they are created.

Invariant: reserved labels, annotations and fields win over the template's (defect MS_D35), the
template's own content passes through unread, and rendering the same slot twice gives equal objects.
"""

from collections.abc import Mapping
from typing import Any

from inferbus_contracts.resources.annotations import POD_SETTINGS, SURGE
from inferbus_workload_reconciler.actions import GROUP_ANNOTATION
from inferbus_workload_reconciler.policy_gang import TASK_ANNOTATION, VOLCANO
from inferbus_workload_reconciler.policy_plugins import apply_plugins
from inferbus_workload_reconciler.policy_revisions import label_safe_hash
from inferbus_workload_reconciler.policy_topology import spread_fields
from inferbus_workload_reconciler.workload import (
    InjectedEnv,
    PodTemplate,
    RoleTemplate,
    ServiceShape,
    Slot,
    WorkloadSpec,
)


def render_pod(
    workload: WorkloadSpec,
    slot: Slot,
    role: RoleTemplate,
    revision: str,
    *,
    surge: bool = False,
    volcano: bool | None = None,
    gang: bool = False,
) -> Mapping[str, Any]:
    """The pod of a slot, assembled in the order of modelserving spec 2.5.

    `surge` marks pods of a group that stands in for others; `volcano` says whether that scheduler
    is there (None: the substrate has no schedulers); `gang` makes the pod one of its group's
    PodGroup (spec 2.3).
    """
    convention = workload.convention
    template = role.pod_template(slot.worker_index)
    labels = {
        **template.labels,
        **convention.pod_labels(workload.namespace, workload.name, slot),
        convention.revision_label: revision,
    }
    if convention.template_hash_label is not None:
        labels[convention.template_hash_label] = role.hash
    annotations = {
        **template.annotations,
        **convention.pod_annotations(workload.name, slot, role.size),
        **({SURGE: "true"} if surge else {}),
        **({} if volcano is None else {POD_SETTINGS: pod_settings(workload)}),
        **(_gang_annotations(workload, slot) if gang else {}),
    }
    metadata = {
        "name": convention.pod_name(workload.name, slot),
        "namespace": workload.namespace,
        "labels": labels,
        "annotations": annotations,
        "ownerReferences": [workload.owner_reference],
    }
    spec = _pod_spec(workload, slot, role, template, volcano)
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
    return apply_plugins(pod, workload, slot)


def render_service(workload: WorkloadSpec, name: str, shape: ServiceShape) -> dict[str, Any]:
    """A headless service that publishes addresses before they are ready (modelserving spec 2.6)."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": name,
            "namespace": workload.namespace,
            "labels": dict(shape.labels),
            "ownerReferences": [workload.owner_reference],
        },
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": dict(shape.selector),
        },
    }


def pod_settings(workload: WorkloadSpec) -> str:
    """A digest of what shapes pods and is part of no revision (modelserving spec 2.8)."""
    gang = workload.gang
    return label_safe_hash(
        {
            "schedulerName": workload.scheduler_name,
            "plugins": [[one.name, one.config, one.roles, one.target] for one in workload.plugins],
            "spread": [
                [one.max_skew, one.topology_key, one.when_unsatisfiable, one.label_selector]
                for one in workload.topology_spread
            ],
            "topology": [
                gang.group_topology,
                gang.role_topology,
                {
                    role.name: role.network_topology
                    for role in workload.roles
                    if role.network_topology
                },
            ],
        }
    )


def effective_scheduler(workload: WorkloadSpec, volcano: bool | None) -> str | None:
    """The scheduler that pods ask for; None and the empty text mean the substrate's own.

    Without Volcano its pods would stay pending for ever, so the default one is used (MS_D27).
    """
    missing = volcano is False and workload.scheduler_name == VOLCANO
    return None if missing else workload.scheduler_name


def _gang_annotations(workload: WorkloadSpec, slot: Slot) -> dict[str, str]:
    return {
        GROUP_ANNOTATION: workload.convention.group_name(workload.name, slot.group),
        TASK_ANNOTATION: workload.convention.role_id(slot.replica),
    }


def _pod_spec(
    workload: WorkloadSpec,
    slot: Slot,
    role: RoleTemplate,
    template: PodTemplate,
    volcano: bool | None,
) -> dict[str, Any]:
    convention = workload.convention
    spec = {**template.spec, **convention.pod_fields(workload.name, slot)}
    scheduler = effective_scheduler(workload, volcano)
    if workload.scheduler_name is not None:
        spec.pop("schedulerName", None)
    if scheduler:
        spec["schedulerName"] = scheduler
    injected = convention.environment(workload.namespace, workload.name, slot, role.size)
    for containers in ("initContainers", "containers"):
        if containers in spec:
            spec[containers] = [_with_env(one, injected) for one in spec[containers]]
    return {**spec, **spread_fields(workload, slot, spec)}


def _with_env(container: Mapping[str, Any], injected: InjectedEnv) -> dict[str, Any]:
    """Ours replace the user's of the same name."""
    ours = {variable["name"] for variable in injected.variables}
    theirs = [one for one in container.get("env") or () if one.get("name") not in ours]
    added = list(injected.variables)
    return {**container, "env": added + theirs if injected.first else theirs + added}
