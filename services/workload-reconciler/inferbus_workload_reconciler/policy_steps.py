"""From decisions to the ordered actions that carry them out.

A snapshot comes before anything that is built from it (defect MS_D7), deletions before creations,
because a quota may leave no room otherwise, a PodGroup before its pods, services after the pods
they select (modelserving spec 2.6, 2.12), and snapshots that nothing needs go last.

Invariant: only objects of this very workload are deleted, each with the uid it was seen with; no
pod is created under a name that is still taken.
"""

from collections.abc import Iterator

from inferbus_workload_reconciler.actions import (
    Action,
    ChildKind,
    Create,
    Delete,
    Motive,
    Reason,
    orphaned,
)
from inferbus_workload_reconciler.observed import Observed, ObservedPod
from inferbus_workload_reconciler.policy_census import GroupView
from inferbus_workload_reconciler.policy_decisions import Decisions
from inferbus_workload_reconciler.policy_pod_groups import PodGroupDecision
from inferbus_workload_reconciler.policy_pods import render_pod
from inferbus_workload_reconciler.policy_revisions import render_snapshot, surplus_snapshots
from inferbus_workload_reconciler.policy_services import (
    changed_services,
    missing_services,
    unused_services,
)


def render_steps(
    decisions: Decisions, observed: Observed, pod_groups: PodGroupDecision, now_ms: int
) -> tuple[Action, ...]:
    """All actions of a plan, in order."""
    return (
        *_orphaned_snapshots(decisions),
        *_new_snapshot(decisions),
        *_pod_deletions(decisions, observed, now_ms),
        *unused_services(decisions, observed),
        *pod_groups.steps,
        *_pod_creations(decisions, observed, pod_groups),
        *missing_services(decisions, observed),
        *changed_services(decisions, observed),
        *_old_snapshots(decisions),
    )


def forced_deletions(decisions: Decisions, observed: Observed) -> Iterator[tuple[ObservedPod, int]]:
    """Pods whose deletion nobody will confirm, because their node is lost, and when to force it."""
    own = (
        pod
        for group in decisions.fleet.groups.values()
        for replica in group.replicas.values()
        for pod in replica.pods.values()
    )
    for pod in (*own, *decisions.fleet.orphans):
        if pod.deletion_due_ms is not None and pod.node in observed.lost_nodes:
            yield pod, pod.deletion_due_ms


def _orphaned_snapshots(decisions: Decisions) -> Iterator[Delete]:
    for orphan in decisions.book.history.orphans:
        yield Delete(
            child=ChildKind.REVISION,
            name=orphan.name,
            uid=orphan.uid,
            motive=orphaned(orphan.owner_uid),
        )


def _new_snapshot(decisions: Decisions) -> Iterator[Create]:
    book = decisions.book
    if book.history.get(book.target) is None:
        number = book.history.next_number
        manifest = render_snapshot(book.workload, book.target, number)
        motive = Motive(Reason.NEW_REVISION, f"revision {book.target} is new, number {number}")
        yield Create(child=ChildKind.REVISION, manifest=manifest, motive=motive)


def _pod_deletions(decisions: Decisions, observed: Observed, now_ms: int) -> Iterator[Delete]:
    for pod in decisions.fleet.orphans:
        if not pod.deleting:
            yield _delete(pod, orphaned(pod.owner.uid if pod.owner else ""))
    for pod, due_ms in forced_deletions(decisions, observed):
        if due_ms <= now_ms:
            motive = Motive(Reason.NODE_LOST, f"node {pod.node} is lost, deletion was due")
            yield _delete(pod, motive, grace_period_seconds=0)
    for ordinal, motive in sorted(decisions.groups.removed.items()):
        yield from _delete_group(decisions.fleet.groups[ordinal], motive)
    for group, decision in decisions.staying():
        if decision.recreated_group is not None:
            yield from _delete_group(group, decision.recreated_group)
            continue
        for id_, motive in {**decision.removed, **decision.recreated}.items():
            for pod in group.replicas[id_].live:
                yield _delete(pod, motive)
        for pod, motive in decision.surplus:
            yield _delete(pod, motive)


def _delete_group(group: GroupView, motive: Motive) -> Iterator[Delete]:
    for replica in group.replicas.values():
        for pod in replica.live:
            yield _delete(pod, motive)


def _delete(pod: ObservedPod, motive: Motive, grace_period_seconds: int | None = None) -> Delete:
    return Delete(
        child=ChildKind.POD,
        name=pod.name,
        uid=pod.uid,
        motive=motive,
        grace_period_seconds=grace_period_seconds,
    )


def _pod_creations(
    decisions: Decisions, observed: Observed, pod_groups: PodGroupDecision
) -> Iterator[Create]:
    workload = decisions.book.workload
    for ordinal in sorted(decisions.members):
        group = decisions.fleet.groups.get(ordinal)
        surge = group.surge if group else decisions.groups.added[ordinal].surge
        for new in decisions.members[ordinal].pods:
            manifest = render_pod(
                workload,
                new.slot,
                new.template,
                new.revision,
                surge=surge,
                volcano=observed.cluster.volcano,
                gang=ordinal in pod_groups.gangs,
            )
            if manifest["metadata"]["name"] not in decisions.fleet.taken_names:
                yield Create(child=ChildKind.POD, manifest=manifest, motive=new.motive)


def _old_snapshots(decisions: Decisions) -> Iterator[Delete]:
    book = decisions.book
    in_use = {
        replica.revision
        for group in decisions.fleet.groups.values()
        for replica in group.replicas.values()
    }
    referenced = in_use | {book.target, decisions.current_revision}
    for snapshot in surplus_snapshots(book.history, referenced):
        yield Delete(
            child=ChildKind.REVISION,
            name=snapshot.name,
            uid=snapshot.uid,
            motive=Motive(Reason.HISTORY_LIMIT, f"revision {snapshot.label} is no longer used"),
        )
