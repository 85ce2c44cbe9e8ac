"""Which PodGroups come, change and go (modelserving spec 4, 3.4).

Invariant: the PodGroup of a group that is scheduled as a gang exists before a pod of it is created,
and stays as long as a pod that stays names it. PodGroups that aren't named by us are never touched,
whoever owns them.
"""

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from inferbus_workload_reconciler.actions import (
    GROUP_ANNOTATION,
    Action,
    ChildKind,
    Create,
    Delete,
    Motive,
    Reason,
    Update,
    orphaned,
)
from inferbus_workload_reconciler.observed import Observed, ObservedPodGroup, is_orphan, is_owned
from inferbus_workload_reconciler.policy_census import GroupView
from inferbus_workload_reconciler.policy_decisions import Decisions
from inferbus_workload_reconciler.policy_gang import (
    gang_roles,
    gangs_are_scheduled,
    is_gang,
    pod_group_spec,
    render_pod_group,
)
from inferbus_workload_reconciler.policy_merge import pod_group_changes
from inferbus_workload_reconciler.policy_structural import Schema, stored_form
from inferbus_workload_reconciler.policy_templates import Shape
from inferbus_workload_reconciler.workload import WorkloadSpec


@dataclass(frozen=True, kw_only=True)
class PodGroupDecision:
    """What becomes of a workload's PodGroups."""

    steps: tuple[Action, ...] = ()
    gangs: frozenset[int] = frozenset()
    """Ordinals of groups that are scheduled as gangs: their pods name the PodGroup."""
    waiting: Mapping[int, str] = field(default_factory=dict)
    """Groups that get no pods for now: a PodGroup that isn't theirs has this name, their own."""
    foreign: tuple[str, ...] = ()
    """Those of these names that something else holds."""


def decide_pod_groups(decisions: Decisions, observed: Observed) -> PodGroupDecision:
    """What becomes of PodGroups; nothing where gangs aren't scheduled and none are left over."""
    if not observed.cluster.volcano:
        return PodGroupDecision()
    present = {group.name: group for group in observed.pod_groups}
    workload = decisions.book.workload
    gangs = _gangs(decisions, observed)
    waiting = {
        ordinal: name
        for ordinal in gangs
        if (name := workload.convention.group_name(workload.name, ordinal)) in present
        and not _is_usable(present[name], decisions)
    }
    return PodGroupDecision(
        steps=(
            *_deletions(decisions, present, gangs),
            *_creations_and_changes(decisions, observed, present, gangs),
        ),
        gangs=frozenset(gangs),
        waiting=waiting,
        foreign=tuple(
            name for name in waiting.values() if not _is_leaving(present[name], decisions)
        ),
    )


def _gangs(decisions: Decisions, observed: Observed) -> dict[int, GroupView]:
    """Groups that stay or come and are scheduled as gangs."""
    workload = decisions.book.workload
    if not gangs_are_scheduled(workload, observed.cluster):
        return {}
    return {
        ordinal: group
        for ordinal, decision in sorted(decisions.members.items())
        if decision.recreated_group is None
        and is_gang(workload, group := decisions.group(ordinal), observed.cluster)
    }


def _is_usable(group: ObservedPodGroup, decisions: Decisions) -> bool:
    return is_owned(group.owner, decisions.book.workload) and not group.deleting


def _is_leaving(group: ObservedPodGroup, decisions: Decisions) -> bool:
    return group.deleting or is_orphan(group.owner, decisions.book.workload)


def _creations_and_changes(
    decisions: Decisions,
    observed: Observed,
    present: Mapping[str, ObservedPodGroup],
    gangs: Mapping[int, GroupView],
) -> Iterator[Action]:
    workload = decisions.book.workload
    specs = _Specs(workload, observed.cluster.pod_group_schema)
    for ordinal, group in gangs.items():
        if group.shape is None:
            continue
        wanted = render_pod_group(workload, ordinal, specs.of(group, group.shape))
        name = wanted["metadata"]["name"]
        stored = present.get(name)
        if stored is None:
            motive = Motive(Reason.POD_GROUP_MISSING, f"PodGroup {name} doesn't exist")
            yield Create(child=ChildKind.POD_GROUP, manifest=wanted, motive=motive)
        elif _is_usable(stored, decisions) and (changes := pod_group_changes(stored, wanted)):
            yield Update(
                child=ChildKind.POD_GROUP,
                name=name,
                uid=stored.uid,
                resource_version=stored.resource_version,
                changes=changes,
                motive=Motive(
                    Reason.POD_GROUP_DIFFERS,
                    f"PodGroup {name} has other {', '.join(_fields(changes))}",
                ),
            )


class _Specs:
    """Specs of PodGroups as the server stores them; groups of one shape share one."""

    def __init__(self, workload: WorkloadSpec, schema: Schema | None) -> None:
        self._workload = workload
        self._schema = schema
        self._by_shape: dict[Hashable, Mapping[str, Any]] = {}

    def of(self, group: GroupView, shape: Shape) -> Mapping[str, Any]:
        roles = gang_roles(self._workload, group, shape)
        key = tuple((role.name, role.template.hash, role.replicas) for role in roles)
        if key not in self._by_shape:
            spec = pod_group_spec(self._workload, roles)
            self._by_shape[key] = stored_form(spec, self._schema)
        return self._by_shape[key]


def _fields(changes: Mapping[str, Mapping[str, object]]) -> list[str]:
    return sorted(name for part in changes.values() for name in part)


def _deletions(
    decisions: Decisions,
    present: Mapping[str, ObservedPodGroup],
    gangs: Mapping[int, GroupView],
) -> Iterator[Delete]:
    workload = decisions.book.workload
    kept = {*gangs, *_coming_back(decisions)}
    ordinals = {workload.convention.group_name(workload.name, ordinal) for ordinal in kept}
    named = ordinals | _named_by_pods(decisions)
    for group in present.values():
        if group.owner is None or group.deleting or not _is_group_name(decisions, group.name):
            continue
        if is_orphan(group.owner, workload):
            yield _delete(group, orphaned(group.owner.uid))
        elif is_owned(group.owner, workload) and group.name not in named:
            cause = f"no pod of group {group.name} needs it any more"
            yield _delete(group, Motive(Reason.POD_GROUP_UNUSED, cause))


def _coming_back(decisions: Decisions) -> Iterator[int]:
    """Groups of which nothing is left and that nobody decided to delete."""
    for ordinal, group in decisions.fleet.groups.items():
        comes_back = ordinal in decisions.known and ordinal not in decisions.groups.removed
        if group.deleting and comes_back:
            yield ordinal


def _named_by_pods(decisions: Decisions) -> set[str]:
    return {
        pod.annotations[GROUP_ANNOTATION]
        for replica in decisions.standing_replicas()
        for pod in replica.live
        if GROUP_ANNOTATION in pod.annotations
    }


def _is_group_name(decisions: Decisions, name: str) -> bool:
    ordinal = name.removeprefix(f"{decisions.book.workload.name}-")
    return ordinal != name and ordinal.isdecimal()


def _delete(group: ObservedPodGroup, motive: Motive) -> Delete:
    return Delete(child=ChildKind.POD_GROUP, name=group.name, uid=group.uid, motive=motive)
