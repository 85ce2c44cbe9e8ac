"""Spreading groups over a topology: `spec.topologySpreadConstraints`.

A scheduler counts pods, not groups, so one pod stands for its group: the entry pod of the first
role's replica 0. The constraint is put on that pod, and the group's other pods are drawn to it
(ruling "topology spread").

Invariant: constraints and affinities that the template has itself are kept; ours are added.
"""

from collections.abc import Mapping
from typing import Any

from inferbus_workload_reconciler.policy_naming import ENTRY, GROUP_NAME, NAME, ROLE_ID
from inferbus_workload_reconciler.workload import ReplicaId, Slot, TopologySpread, WorkloadSpec

REQUIRED = "DoNotSchedule"
PREFERRED_WEIGHT = 100


def spread_fields(workload: WorkloadSpec, slot: Slot, spec: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a pod's spec that spreading changes; empty without constraints."""
    if not workload.topology_spread:
        return {}
    if slot == Slot(slot.group, workload.roles[0].name, 0, 0):
        own = spec.get("topologySpreadConstraints") or []
        added = [_constraint(workload, slot, one) for one in workload.topology_spread]
        return {"topologySpreadConstraints": [*own, *added]}
    return {"affinity": _drawn_to_representative(workload, slot, spec.get("affinity") or {})}


def _role_id(workload: WorkloadSpec, group: int) -> str:
    return workload.convention.role_id(ReplicaId(group, workload.roles[0].name, 0))


def _constraint(workload: WorkloadSpec, slot: Slot, spread: TopologySpread) -> dict[str, Any]:
    representatives = {NAME: workload.name, ROLE_ID: _role_id(workload, slot.group)}
    return {
        "maxSkew": spread.max_skew,
        "topologyKey": spread.topology_key,
        "whenUnsatisfiable": spread.when_unsatisfiable,
        "labelSelector": spread.label_selector or {"matchLabels": representatives},
    }


def _drawn_to_representative(
    workload: WorkloadSpec, slot: Slot, affinity: Mapping[str, Any]
) -> dict[str, Any]:
    group = workload.convention.group_name(workload.name, slot.group)
    selector = {GROUP_NAME: group, ROLE_ID: _role_id(workload, slot.group), ENTRY: "true"}
    pod_affinity = dict(affinity.get("podAffinity") or {})
    required = list(pod_affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or ())
    preferred = list(pod_affinity.get("preferredDuringSchedulingIgnoredDuringExecution") or ())
    for spread in workload.topology_spread:
        term = {"labelSelector": {"matchLabels": selector}, "topologyKey": spread.topology_key}
        if spread.when_unsatisfiable == REQUIRED:
            required.append(term)
        else:
            preferred.append({"weight": PREFERRED_WEIGHT, "podAffinityTerm": term})
    if required:
        pod_affinity["requiredDuringSchedulingIgnoredDuringExecution"] = required
    if preferred:
        pod_affinity["preferredDuringSchedulingIgnoredDuringExecution"] = preferred
    return {**affinity, "podAffinity": pod_affinity}
