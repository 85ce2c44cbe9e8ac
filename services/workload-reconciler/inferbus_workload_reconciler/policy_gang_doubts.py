"""Doubts about scheduling: what is asked of a gang scheduler and isn't done, or not to every pod.

Invariant: nothing is told on a substrate without schedulers, and nothing about a workload that asks
for nothing.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from inferbus_contracts.conditions import condition
from inferbus_contracts.events.route import ConditionFact
from inferbus_contracts.resources.annotations import POD_SETTINGS
from inferbus_workload_reconciler.observed import Cluster, Observed, ObservedPod
from inferbus_workload_reconciler.policy_conditions import (
    GANG_LIMITED,
    SCHEDULER_FALLBACK,
    SCHEDULING_DRIFT,
)
from inferbus_workload_reconciler.policy_decisions import Decisions
from inferbus_workload_reconciler.policy_gang import VOLCANO, gangs_are_scheduled
from inferbus_workload_reconciler.policy_pod_groups import PodGroupDecision
from inferbus_workload_reconciler.policy_pods import effective_scheduler, pod_settings
from inferbus_workload_reconciler.workload import WorkloadSpec

DEFAULT_SCHEDULER = "default-scheduler"
"""What a server writes into a pod that asks for no scheduler."""


def scheduling_doubts(
    decisions: Decisions, observed: Observed, pod_groups: PodGroupDecision
) -> Iterator[ConditionFact]:
    """Doubts about schedulers, gangs and topology (defects MS_D27, MS_D28, MS_D33)."""
    workload, cluster = decisions.book.workload, observed.cluster
    if cluster.volcano is None:
        return
    if effective_scheduler(workload, cluster.volcano) != workload.scheduler_name:
        yield condition(
            SCHEDULER_FALLBACK,
            True,
            "VolcanoMissing",
            f"scheduler {workload.scheduler_name} is not installed; new pods use the default one",
        )
    limited = _limited(workload, cluster) if workload.gang.stated else None
    if limited is not None:
        yield condition(GANG_LIMITED, True, *limited)
    yield from _drift(decisions, cluster, pod_groups)


def _limited(workload: WorkloadSpec, cluster: Cluster) -> tuple[str, str] | None:
    """Reason and message when something of gangPolicy or networkTopology is not done."""
    if workload.scheduler_name != VOLCANO:
        return (
            "OtherScheduler",
            f"gangPolicy and networkTopology are ignored: scheduler {workload.scheduler_name}"
            f" doesn't know them; set schedulerName to {VOLCANO}",
        )
    if not cluster.volcano:
        return (
            "VolcanoMissing",
            "gangPolicy and networkTopology are ignored: PodGroups of Volcano are not served;"
            " install Volcano",
        )
    ignored = _ignored_fields(workload, cluster)
    if not ignored:
        return None
    return (
        "VolcanoTooOld",
        f"{' and '.join(ignored)} are not enforced: the PodGroups of this Volcano can't hold them;"
        " install Volcano 1.14 or newer",
    )


def _ignored_fields(workload: WorkloadSpec, cluster: Cluster) -> list[str]:
    """What a PodGroup would have to hold and can't; its total minimum is enforced all the same."""
    gang = workload.gang
    per_role = any(role.network_topology is not None for role in workload.roles)
    needed = {
        "minRoleReplicas of each role": ("subGroupPolicy", bool(gang.min_role_replicas)),
        "network topologies of roles": (
            "subGroupPolicy",
            gang.role_topology is not None or per_role,
        ),
        "network topologies of groups": ("networkTopology", gang.group_topology is not None),
    }
    held = _fields_held(cluster)
    return [name for name, (field, used) in needed.items() if used and held and field not in held]


def _fields_held(cluster: Cluster) -> Mapping[str, Any]:
    """Empty where the schema isn't known."""
    return (cluster.pod_group_schema or {}).get("properties") or {}


def _drift(
    decisions: Decisions, cluster: Cluster, pod_groups: PodGroupDecision
) -> Iterator[ConditionFact]:
    """Pods built before scheduler, topology or plugins were changed: nothing of it moves them."""
    workload = decisions.book.workload
    scheduler = effective_scheduler(workload, cluster.volcano) or DEFAULT_SCHEDULER
    settings = pod_settings(workload)
    drifted = sorted(
        (pod.name, why)
        for replica in decisions.standing_replicas()
        for pod in replica.live
        if (why := _difference(pod, scheduler, settings))
    )
    if not drifted and gangs_are_scheduled(workload, cluster):
        drifted = [
            (f"group {ordinal}", "without a PodGroup")
            for ordinal, group in decisions.fleet.groups.items()
            if ordinal in decisions.members and ordinal not in pod_groups.gangs
        ]
    if drifted:
        name, why = drifted[0]
        more = f", and {len(drifted) - 1} more" if len(drifted) > 1 else ""
        yield condition(
            SCHEDULING_DRIFT,
            True,
            "BuiltBefore",
            f"{name} was built {why}{more}: pods that run keep what they were built with; change"
            " the templates, e.g. an annotation, to replace them",
        )


def _difference(pod: ObservedPod, scheduler: str, settings: str) -> str:
    """How a pod was built otherwise; empty when it wasn't, or that can't be told."""
    own = pod.spec.get("schedulerName") or DEFAULT_SCHEDULER
    if own != scheduler:
        return f"for scheduler {own}, not {scheduler}"
    if pod.annotations.get(POD_SETTINGS, settings) != settings:
        return "with other plugins, topology or spreading"
    return ""
