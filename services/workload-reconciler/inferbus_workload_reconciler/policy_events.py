"""Events on the workload object: how its role replicas come and go (modelserving spec 2.10).

Invariant: an event tells a transition. It is derived from what stood after the last plan (the
memory) and what stands now, so a plan that changes nothing tells nothing.
"""

from collections.abc import Iterator, Mapping

from inferbus_workload_reconciler.actions import EventReason, WorkloadEvent
from inferbus_workload_reconciler.policy_census import ReplicaView
from inferbus_workload_reconciler.policy_decisions import Decisions
from inferbus_workload_reconciler.policy_memory import Standing
from inferbus_workload_reconciler.workload import ReplicaId


def role_events(decisions: Decisions) -> Iterator[WorkloadEvent]:
    """Transitions of role replicas (modelserving spec 2.10)."""
    for ordinal in sorted(decisions.groups.removed):
        for replica in decisions.fleet.groups[ordinal].replicas.values():
            yield from _deleting(decisions, replica)
    for group, decision in decisions.staying():
        known = decisions.known.get(group.ordinal, {})
        for replica in group.replicas.values():
            going = replica.id in decision.removed or replica.id in decision.recreated
            if going or decision.recreated_group is not None:
                yield from _deleting(decisions, replica)
            elif replica.running and known.get(replica.id) is not Standing.RUNNING:
                yield _event(decisions, EventReason.RUNNING, replica.id)
            elif not replica.running and known.get(replica.id) is Standing.RUNNING:
                yield _event(decisions, EventReason.CREATING, replica.id)
    yield from _created(decisions)


def _created(decisions: Decisions) -> Iterator[WorkloadEvent]:
    for ordinal in sorted(decisions.members):
        group = decisions.fleet.groups.get(ordinal)
        standing: Mapping[ReplicaId, ReplicaView] = group.replicas if group else {}
        built = dict.fromkeys(new.slot.replica for new in decisions.members[ordinal].pods)
        for replica in built:
            if replica not in standing:
                yield _event(decisions, EventReason.CREATING, replica)


def _deleting(decisions: Decisions, replica: ReplicaView) -> Iterator[WorkloadEvent]:
    if not replica.deleting:
        yield _event(decisions, EventReason.DELETING, replica.id)


def _event(decisions: Decisions, reason: EventReason, replica: ReplicaId) -> WorkloadEvent:
    workload = decisions.book.workload
    group = workload.convention.group_name(workload.name, replica.group)
    state = reason.value.removeprefix("Role")
    return WorkloadEvent(
        reason,
        f"Role {replica.role}, replica {replica.role}-{replica.ordinal} of group {group}"
        f" is now {state}",
    )
