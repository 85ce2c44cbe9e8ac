"""PodGroups as a group should have them: how much of it must fit at once, and how close together.

A PodGroup speaks of the pods that its group really has or gets: templates come from the group's own
revision, counts from the spec, and no minimum exceeds a role's replicas (defects MS_D26, MS_D29).

Invariant: a PodGroup never asks for more pods than its group gets, so a gang can always be
scheduled once there is room.
"""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Final, NamedTuple

from inferbus_contracts.resources.annotations import StartupStep
from inferbus_workload_reconciler.actions import GROUP_ANNOTATION
from inferbus_workload_reconciler.observed import Cluster
from inferbus_workload_reconciler.policy_census import GroupView
from inferbus_workload_reconciler.policy_naming import GROUP_NAME, NAME, ROLE, ROLE_ID
from inferbus_workload_reconciler.policy_resources import (
    effective_requests,
    quantity_text,
    total,
)
from inferbus_workload_reconciler.policy_templates import Shape, WantedRole
from inferbus_workload_reconciler.workload import RoleTemplate, WorkloadSpec

VOLCANO: Final = "volcano"
API_VERSION: Final = "scheduling.volcano.sh/v1beta1"
TASK_ANNOTATION: Final = "volcano.sh/task-spec"

MANAGED_FIELDS: Final = (
    "minMember",
    "minResources",
    "queue",
    "networkTopology",
    "subGroupPolicy",
    "minTaskMember",
)
"""Fields of a PodGroup's spec that are ours; others are left to whoever set them. The last one is
how ModelServing v0.1 asked for what subGroupPolicy asks for now: it is taken out."""


class GangRole(NamedTuple):
    """One role as a gang needs it."""

    name: str
    template: RoleTemplate
    replicas: int
    """How many must fit at once."""
    topology: Mapping[str, Any] | None


def gangs_are_scheduled(workload: WorkloadSpec, cluster: Cluster) -> bool:
    """Whether groups get PodGroups: Volcano is there, and it schedules them (spec 4.1)."""
    return cluster.volcano is True and workload.scheduler_name == VOLCANO


def startup_steps(workload: WorkloadSpec, cluster: Cluster) -> frozenset[StartupStep]:
    """The steps in which groups start: none of a gang is scheduled before all of it exists."""
    return frozenset() if gangs_are_scheduled(workload, cluster) else workload.startup


def is_gang(workload: WorkloadSpec, group: GroupView, cluster: Cluster) -> bool:
    """Whether a group is scheduled as a gang; an empty one is, where gangs are scheduled.

    A group becomes one as a whole. Pods that joined the PodGroup of a group whose other pods never
    did, as in a fleet from before Volcano, would wait for those for ever.
    """
    name = workload.convention.group_name(workload.name, group.ordinal)
    return gangs_are_scheduled(workload, cluster) and all(
        pod.annotations.get(GROUP_ANNOTATION) == name
        for replica in group.replicas.values()
        for pod in replica.live
    )


def gang_roles(workload: WorkloadSpec, group: GroupView, shape: Shape) -> tuple[GangRole, ...]:
    """The roles of a group's gang, in the order of its templates."""
    return tuple(_gang_role(workload, group, wanted) for wanted in shape)


def _gang_role(workload: WorkloadSpec, group: GroupView, wanted: WantedRole) -> GangRole:
    name, replicas = wanted.template.name, wanted.replicas
    least = min(workload.gang.min_role_replicas.get(name, replicas), replicas)
    spec = workload.role(name)
    own = None if spec is None else spec.network_topology
    topology = workload.gang.role_topology if own is None else own
    return GangRole(name, _smallest_template(group, wanted), least, topology)


def _smallest_template(group: GroupView, wanted: WantedRole) -> RoleTemplate:
    """While replicas of two sizes stand side by side, the minimum counts the smaller."""
    standing = (
        replica.template
        for replica in group.replicas.values()
        if replica.id.role == wanted.template.name and replica.template is not None
    )
    return min((wanted.template, *standing), key=lambda template: template.size)


def render_pod_group(
    workload: WorkloadSpec, ordinal: int, spec: Mapping[str, Any]
) -> dict[str, Any]:
    """The PodGroup of a group with that spec (modelserving spec 4.2, 2.9)."""
    name = workload.convention.group_name(workload.name, ordinal)
    owner = workload.owner_reference
    del owner["blockOwnerDeletion"]
    return {
        "apiVersion": API_VERSION,
        "kind": "PodGroup",
        "metadata": {
            "name": name,
            "namespace": workload.namespace,
            "labels": {NAME: workload.name, GROUP_NAME: name},
            "annotations": {GROUP_ANNOTATION: name},
            "ownerReferences": [owner],
        },
        "spec": spec,
    }


def pod_group_spec(workload: WorkloadSpec, roles: tuple[GangRole, ...]) -> dict[str, Any]:
    """The spec of a gang of these roles, with everything that any Volcano reads."""
    spec: dict[str, Any] = {
        "minMember": sum(role.replicas * role.template.size for role in roles),
        "minResources": {
            name: quantity_text(name, value)
            for name, value in sorted(_least_resources(roles).items())
        },
        "subGroupPolicy": [_subgroup(workload, role) for role in roles],
    }
    if workload.gang.queue:
        spec["queue"] = workload.gang.queue
    if workload.gang.group_topology is not None:
        spec["networkTopology"] = dict(workload.gang.group_topology)
    return spec


def _least_resources(roles: tuple[GangRole, ...]) -> dict[str, Fraction]:
    return total(
        (effective_requests(role.template.pod_template(index).spec), role.replicas * times)
        for role in roles
        for index, times in ((0, 1), (1, role.template.worker_replicas))
        if times
    )


def _subgroup(workload: WorkloadSpec, role: GangRole) -> dict[str, Any]:
    policy: dict[str, Any] = {
        "name": role.name,
        "labelSelector": {"matchLabels": {NAME: workload.name, ROLE: role.name}},
        "matchLabelKeys": [ROLE_ID],
        "subGroupSize": role.template.size,
        "minSubGroups": role.replicas,
    }
    if role.topology is not None:
        policy["networkTopology"] = dict(role.topology)
    return policy
