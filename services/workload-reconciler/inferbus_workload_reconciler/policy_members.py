"""What happens inside one group: its roles' changes, what failed in it, and what it lacks.

Invariant: a pod is refilled by itself only where the recovery policy is None or where its replica
was never complete; otherwise the unit that the policy names is recreated as a whole, so that the
pods of a unit always started together (modelserving spec 3.6, 3.11).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from inferbus_workload_reconciler.actions import Motive, Reason
from inferbus_workload_reconciler.observed import ObservedPod
from inferbus_workload_reconciler.policy_census import GroupView, ReplicaView
from inferbus_workload_reconciler.policy_memory import Standing
from inferbus_workload_reconciler.policy_recovery import FailureReview
from inferbus_workload_reconciler.policy_roles import NewReplica, decide_roles
from inferbus_workload_reconciler.policy_templates import Freshness, TemplateBook
from inferbus_workload_reconciler.workload import RecoveryPolicy, ReplicaId, RoleTemplate, Slot


class NewPod(NamedTuple):
    """A pod to build."""

    slot: Slot
    template: RoleTemplate
    revision: str
    motive: Motive


@dataclass(frozen=True, kw_only=True)
class MemberDecision:
    """What to do inside one group."""

    removed: Mapping[ReplicaId, Motive] = field(default_factory=dict)
    """Role replicas to delete because they are not wanted as they are."""
    recreated: Mapping[ReplicaId, Motive] = field(default_factory=dict)
    """Role replicas to delete because something in them failed; they come back."""
    recreated_group: Motive | None = None
    """Set when the whole group is to be deleted for the same reason."""
    surplus: tuple[tuple[ObservedPod, Motive], ...] = ()
    pods: tuple[NewPod, ...] = ()

    @property
    def changes_nothing(self) -> bool:
        """Whether all its role replicas stay as they are."""
        return not (self.removed or self.recreated or self.recreated_group or self.pods)


def decide_members(
    book: TemplateBook,
    group: GroupView,
    known: Mapping[ReplicaId, Standing],
    current_revision: str,
    failures: FailureReview,
) -> MemberDecision:
    """What to do inside a group that stays; `known` are its replicas that once were complete."""
    policy = book.workload.recovery
    roles = decide_roles(book, group, current_revision)
    kept = [one for one in group.replicas.values() if one.id not in roles.removed]
    troubles: dict[ReplicaId, Motive] = {}
    gone: dict[ReplicaId, Motive] = {}
    if policy is not RecoveryPolicy.NONE:
        troubles = {one.id: motive for one in kept if (motive := _trouble(one, known, failures))}
        gone = _gone(group, known, roles.added)
    if policy is RecoveryPolicy.GROUP and (troubles or gone):
        motive = next(iter({**troubles, **gone}.values()))
        return MemberDecision(removed=roles.removed, recreated_group=motive)
    untouched = [one for one in kept if one.id not in troubles]
    return MemberDecision(
        removed=roles.removed,
        recreated={one.id: troubles[one.id] for one in kept if one.id in troubles and one.live},
        surplus=tuple(pair for one in untouched for pair in _surplus(one)),
        pods=(
            *(pod for one in untouched for pod in _refill(book, one, one.id in known)),
            *(pod for new in roles.added for pod in build(new, gone.get(new.id))),
        ),
    )


def build(new: NewReplica, motive: Motive | None = None) -> list[NewPod]:
    """All pods of a new role replica, entry first."""
    return [
        NewPod(Slot(*new.id, index), new.template, new.revision, motive or new.motive)
        for index in range(new.template.size)
    ]


def _trouble(
    replica: ReplicaView, known: Mapping[ReplicaId, Standing], failures: FailureReview
) -> Motive | None:
    """Why a replica can't stay; None while nobody knows what it would be rebuilt from."""
    if replica.template is None:
        return None
    for pod in replica.live:
        if pod.uid in failures.due:
            return Motive(
                Reason.POD_FAILED,
                f"pod {pod.name} failed: phase {pod.phase}, {pod.restarts} restarts, not ready",
            )
    if replica.id not in known or replica.complete:
        return None
    deleting = [pod.name for pod in replica.pods.values() if pod.deleting]
    present = len(replica.pods) - len(deleting)
    being = f", {', '.join(deleting)} being deleted" if deleting else ""
    return Motive(
        Reason.POD_LOST,
        f"{present} of {replica.template.size} pods of replica {replica.id} are left{being}",
    )


def _gone(
    group: GroupView, known: Mapping[ReplicaId, Standing], added: tuple[NewReplica, ...]
) -> dict[ReplicaId, Motive]:
    """Replicas that were complete, have no pod any more, and whose role is to be filled up."""
    filled = {new.id.role for new in added}
    return {
        replica: Motive(Reason.POD_LOST, f"all pods of replica {replica} are gone")
        for replica in known
        if replica not in group.replicas and replica.role in filled
    }


def _refill(book: TemplateBook, replica: ReplicaView, was_complete: bool) -> list[NewPod]:
    """Empty slots, unless the replica is on its way out by decision."""
    if replica.template is None or (replica.deleting and not was_complete):
        return []
    current = replica.freshness is Freshness.CURRENT
    motive = Motive(
        Reason.POD_MISSING,
        f"{len(replica.pods)} of {replica.template.size} pods of replica {replica.id} exist",
    )
    revision = book.target if current else replica.revision
    return [
        NewPod(Slot(*replica.id, index), replica.template, revision, motive)
        for index in replica.missing
    ]


def _surplus(replica: ReplicaView) -> list[tuple[ObservedPod, Motive]]:
    size = replica.template.size if replica.template else 0
    motive = Motive(Reason.POD_SURPLUS, f"replica {replica.id} has {size} pods in its template")
    return [(pod, motive) for pod in replica.surplus]
