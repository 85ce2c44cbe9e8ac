"""Which role replicas come and go inside one group: scaling, and the rolling update by role.

Invariant: a replica below its role's partition keeps its revision, and of each role never more than
its maxUnavailable are taken away by an update (modelserving spec 3.5, 3.8).
"""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from inferbus_workload_reconciler.actions import Motive, Reason
from inferbus_workload_reconciler.policy_budget import (
    replacement_budget,
    resolve,
    unavailable_limit,
)
from inferbus_workload_reconciler.policy_census import GroupView, ReplicaView
from inferbus_workload_reconciler.policy_groups import (
    Candidate,
    missing_ordinals,
    place_in_words,
    replacement_order,
    surplus,
)
from inferbus_workload_reconciler.policy_templates import Freshness, TemplateBook, WantedRole
from inferbus_workload_reconciler.workload import ReplicaId, RoleSpec, RoleTemplate


class NewReplica(NamedTuple):
    """A role replica to build."""

    id: ReplicaId
    template: RoleTemplate
    revision: str
    motive: Motive


@dataclass(frozen=True)
class RoleDecision:
    """Role replicas of one group to delete and to build."""

    removed: Mapping[ReplicaId, Motive]
    added: tuple[NewReplica, ...]


def decide_roles(book: TemplateBook, group: GroupView, current_revision: str) -> RoleDecision:
    """What changes in a group; nothing while the snapshot of its revision is lost."""
    removed: dict[ReplicaId, Motive] = {}
    added: list[NewReplica] = []
    by_role = group.by_role()
    for wanted in group.shape or ():
        present = by_role.get(wanted.template.name, [])
        partition = _partition(book, wanted.template.name)
        added += _add(book, group, wanted, present, current_revision, partition)
        removed |= _scale_down(wanted, present, partition)
        if book.per_role:
            removed |= _replace_outdated(book, wanted, present, removed, partition)
    if book.per_role and not book.workload.paused:
        removed |= _vanished(book, group)
    return RoleDecision(removed, tuple(added))


def _partition(book: TemplateBook, role: str) -> int:
    spec = book.workload.role(role)
    if not book.per_role or spec is None:
        return 0
    if book.workload.paused:
        return sys.maxsize
    return resolve(spec.partition, spec.replicas, round_up=True)


def _add(
    book: TemplateBook,
    group: GroupView,
    wanted: WantedRole,
    present: list[ReplicaView],
    current_revision: str,
    partition: int,
) -> list[NewReplica]:
    if len(present) >= wanted.replicas:
        return []
    role = wanted.template.name
    cause = (
        f"{len(present)} of {wanted.replicas} replicas of role {role} exist in group"
        f" {group.ordinal}"
    )
    behind = book.per_role and not group.updated
    motive = Motive(Reason.ROLE_ROLLING_UPDATE if behind else Reason.ROLE_SCALE_UP, cause)
    kept = book.template(current_revision, role)
    if kept is None and book.workload.paused and book.history.get(current_revision) is not None:
        return []
    added = []
    for ordinal in missing_ordinals({replica.id.ordinal for replica in present}, wanted.replicas):
        id_ = ReplicaId(group.ordinal, role, ordinal)
        if ordinal < partition and kept is not None:
            added.append(NewReplica(id_, kept, current_revision, motive))
        else:
            added.append(NewReplica(id_, wanted.template, wanted.revision, motive))
    return added


def _scale_down(
    wanted: WantedRole, present: list[ReplicaView], partition: int
) -> dict[ReplicaId, Motive]:
    standing = {one.id.ordinal: one for one in present if not one.deleting}
    if len(standing) <= wanted.replicas:
        return {}
    victims = surplus(list(map(_candidate, standing.values())), wanted.replicas, partition)
    return {
        standing[one.ordinal].id: Motive(
            Reason.ROLE_SCALE_DOWN,
            f"{len(standing)} replicas of role {wanted.template.name} exist in group"
            f" {standing[one.ordinal].id.group}, {wanted.replicas} are wanted; replica"
            f" {one.ordinal} goes first: {place_in_words(one)}",
        )
        for one in victims
    }


def _replace_outdated(
    book: TemplateBook,
    wanted: WantedRole,
    present: list[ReplicaView],
    removed: Mapping[ReplicaId, Motive],
    partition: int,
) -> dict[ReplicaId, Motive]:
    spec = book.workload.role(wanted.template.name)
    candidates = {
        one.id.ordinal: one
        for one in present
        if one.freshness is Freshness.OUTDATED
        and one.id.ordinal >= partition
        and not one.deleting
        and one.id not in removed
    }
    unavailable = sum(
        one.id.ordinal not in candidates and (one.id in removed or not one.running)
        for one in present
    )
    budget, limit = _budget(spec, len(present), unavailable)
    return {
        candidates[one.ordinal].id: Motive(
            Reason.ROLE_ROLLING_UPDATE,
            f"replica {one.ordinal} of role {wanted.template.name} in group"
            f" {candidates[one.ordinal].id.group} is outdated; {len(present)} replicas,"
            f" {unavailable} of the others unavailable, {wanted.replicas} wanted,"
            f" maxUnavailable {limit}: {budget} may go",
        )
        for one in replacement_order(map(_candidate, candidates.values()))[:budget]
    }


def _budget(spec: RoleSpec | None, present: int, unavailable: int) -> tuple[int, str]:
    """How many may go, and the limit in words; without a limit all may (modelserving spec 1.5)."""
    if spec is None or spec.max_unavailable is None:
        return present, "not set"
    limit = unavailable_limit(spec.max_unavailable, spec.replicas)
    return replacement_budget(present, spec.replicas, limit, unavailable), str(limit)


def _vanished(book: TemplateBook, group: GroupView) -> dict[ReplicaId, Motive]:
    """Replicas of roles that the spec has no more go at once (modelserving spec 3.8)."""
    return {
        replica.id: Motive(
            Reason.ROLE_REMOVED, f"role {replica.id.role} is no longer part of the workload"
        )
        for replica in group.replicas.values()
        if book.workload.role(replica.id.role) is None and not replica.deleting
    }


def _candidate(replica: ReplicaView) -> Candidate:
    return Candidate(replica.id.ordinal, replica.running, replica.deleting, replica.cost)
