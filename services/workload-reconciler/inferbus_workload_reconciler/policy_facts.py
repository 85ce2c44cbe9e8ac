"""What the bus is told about a workload: `workload.observed`.

Invariant: facts speak of what was seen, never of what is planned; pods that the object doesn't own
are not in them.
"""

from collections.abc import Mapping, Sequence

from inferbus_contracts.events.workload import GroupFact, PodFact, RoleFact, WorkloadObserved
from inferbus_contracts.resources.annotations import PREFIX
from inferbus_workload_reconciler.core import Plan
from inferbus_workload_reconciler.observed import ObservedPod
from inferbus_workload_reconciler.policy_census import Fleet, ReplicaView
from inferbus_workload_reconciler.workload import ReplicaId, WorkloadSpec


def observed_facts(
    workload: WorkloadSpec,
    plan: Plan,
    *,
    models: Mapping[str, Sequence[str]] | None = None,
    frozen: bool = False,
    deleted: bool = False,
) -> WorkloadObserved:
    """The facts behind a plan.

    `models` are the names that engines report, by pod uid; `frozen` says that an order holds the
    scale of the workload; `deleted` that its object is gone and these are the pods left of it.
    """
    fleet, summary = plan.fleet, plan.summary
    groups = fleet.groups.values()
    return WorkloadObserved(
        uid=workload.uid,
        generation=workload.generation,
        deleted=deleted,
        desired=workload.replicas,
        replicas=len(fleet.groups),
        ready=sum(group.running for group in groups),
        updated=sum(group.updated and not group.deleting for group in groups),
        current_revision=summary.current_revision,
        update_revision=summary.update_revision,
        label_selector=summary.label_selector,
        groups=[
            GroupFact(
                name=workload.convention.group_name(workload.name, group.ordinal),
                ordinal=group.ordinal,
                revision=group.revision,
                ready=group.running,
                deleting=group.deleting,
            )
            for group in groups
        ],
        roles=_roles(workload, fleet),
        pods=[
            _pod(workload, plan, replica, index, pod, models or {})
            for group in groups
            for replica in group.replicas.values()
            for index, pod in replica.pods.items()
        ],
        frozen=frozen,
        problem="; ".join(doubt.message for doubt in plan.doubts),
    )


def _roles(workload: WorkloadSpec, fleet: Fleet) -> list[RoleFact]:
    """None for workloads whose groups have no roles."""
    ready: dict[str, int] = {}
    for group in fleet.groups.values():
        for replica in group.replicas.values():
            ready[replica.id.role] = ready.get(replica.id.role, 0) + replica.running
    return [
        RoleFact(name=role.name, desired=role.replicas, ready=ready.get(role.name, 0))
        for role in workload.roles
        if _role_id(workload, ReplicaId(0, role.name, 0))
    ]


def _pod(
    workload: WorkloadSpec,
    plan: Plan,
    replica: ReplicaView,
    index: int,
    pod: ObservedPod,
    models: Mapping[str, Sequence[str]],
) -> PodFact:
    role_id = _role_id(workload, replica.id)
    return PodFact(
        name=pod.name,
        uid=pod.uid,
        phase=pod.phase,
        ready=pod.ready,
        deleting=pod.deleting,
        failed=pod.phase == "Failed" or pod.uid in plan.memory.failing,
        node=pod.node,
        address=pod.address,
        ports=_ports(pod),
        role=replica.id.role if role_id else "",
        role_id=role_id,
        group=workload.convention.group_name(workload.name, replica.id.group),
        entry=index == 0,
        revision=pod.labels.get(workload.convention.revision_label, ""),
        labels=dict(pod.labels),
        annotations={
            key: value for key, value in pod.annotations.items() if key.startswith(PREFIX)
        },
        restarts=pod.restarts,
        starting_since_ms=pod.created_ms,
        ready_since_ms=pod.ready_since_ms,
        unplaced_since_ms=pod.unplaced_since_ms,
        models=list(models.get(pod.uid, ())),
        message=pod.message,
    )


def _role_id(workload: WorkloadSpec, replica: ReplicaId) -> str:
    return workload.convention.role_id(replica)


def _ports(pod: ObservedPod) -> list[int]:
    containers = pod.spec.get("containers") or ()
    return sorted(
        {port["containerPort"] for container in containers for port in container.get("ports") or ()}
    )
