"""What a plan leaves behind: the memory, and when to look again.

Invariant: what is deleted by decision is forgotten at once, what is deleted because it failed only
when it is gone, so that a plan cut short is taken up again with the same intention.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from inferbus_workload_reconciler.observed import Observed
from inferbus_workload_reconciler.policy_census import ReplicaView
from inferbus_workload_reconciler.policy_decisions import Decisions, recreated_uids
from inferbus_workload_reconciler.policy_groups import BATCH
from inferbus_workload_reconciler.policy_memory import Memory, Setback, Standing
from inferbus_workload_reconciler.policy_pod_groups import PodGroupDecision
from inferbus_workload_reconciler.policy_progress import deadline_ms, follow_progress
from inferbus_workload_reconciler.policy_recovery import (
    count_failures,
    forget_recovered,
    recovery_unit,
)
from inferbus_workload_reconciler.policy_status import WorkloadStatus
from inferbus_workload_reconciler.policy_steps import forced_deletions
from inferbus_workload_reconciler.workload import ReplicaId

ORPHAN_CHECK_MS = 1_000
"""How soon to look again for a name that something else still holds."""


def remember(
    decisions: Decisions,
    observed: Observed,
    memory: Memory,
    summary: WorkloadStatus,
    now_ms: int,
) -> Memory:
    """The memory after this plan; the one before when nothing worth keeping happened."""
    workload = decisions.book.workload
    given_up = {uid: recovery_unit(workload, replica) for uid, replica in recreated_uids(decisions)}
    setbacks, failing = count_failures(
        memory.setbacks, decisions.failures.failing, given_up, now_ms
    )
    kept, _ = forget_recovered(setbacks, _running_since_ms(decisions, setbacks, now_ms), now_ms)
    after = Memory(
        view=memory.view,
        current_revision=summary.current_revision,
        replicas=dict(_standings(decisions)),
        failing=failing,
        forgiven_restarts=decisions.failures.forgiven_restarts,
        setbacks=kept,
        progress=follow_progress(decisions, summary, memory.progress, now_ms),
    )
    return memory if after == memory else replace(after, view=observed.revision)


def next_check(
    decisions: Decisions,
    observed: Observed,
    pod_groups: PodGroupDecision,
    memory: Memory,
    now_ms: int,
) -> int | None:
    """When something is due though nothing changes; `memory` is the one after the plan."""
    due = [one.due_ms for one in memory.failing.values() if one.due_ms > now_ms]
    due += [due_ms for _, due_ms in forced_deletions(decisions, observed) if due_ms > now_ms]
    running = _running_since_ms(decisions, memory.setbacks, now_ms)
    _, recovered_ms = forget_recovered(memory.setbacks, running, now_ms)
    overdue_ms = deadline_ms(decisions, memory.progress)
    due += [at for at in (recovered_ms, overdue_ms) if at is not None and at > now_ms]
    if decisions.fleet.orphans or pod_groups.waiting:
        due.append(now_ms + ORPHAN_CHECK_MS)
    if len(decisions.groups.added) >= BATCH:
        due.append(now_ms)
    return min(due, default=None)


def _standings(decisions: Decisions) -> Iterator[tuple[ReplicaId, Standing]]:
    for ordinal, group in decisions.fleet.groups.items():
        known = decisions.known.get(ordinal, {})
        decision = decisions.members.get(ordinal)
        if ordinal in decisions.groups.removed:
            continue
        if decision is None or decision.recreated_group is not None:
            yield from ((id_, Standing.COMPLETE) for id_ in known)
            continue
        for id_, replica in group.replicas.items():
            if id_ in decision.removed:
                continue
            if replica.running:
                yield id_, Standing.RUNNING
            elif replica.complete or id_ in known:
                yield id_, Standing.COMPLETE


def _running_since_ms(
    decisions: Decisions, setbacks: Mapping[str, Setback], now_ms: int
) -> dict[str, int | None]:
    """Since when each unit that had setbacks, and exists or is being built, has been running."""
    since: dict[str, int | None] = {}
    if not setbacks:
        return since
    workload = decisions.book.workload
    for decision in decisions.members.values():
        since |= {recovery_unit(workload, new.slot.replica): None for new in decision.pods}
    for group in decisions.fleet.groups.values():
        for replica in group.replicas.values():
            unit = recovery_unit(workload, replica.id)
            own = _ready_since_ms(replica, now_ms)
            before = since.get(unit, own)
            since[unit] = None if own is None or before is None else max(own, before)
    return since


def _ready_since_ms(replica: ReplicaView, now_ms: int) -> int | None:
    if not replica.running:
        return None
    return max(
        now_ms if pod.ready_since_ms is None else pod.ready_since_ms
        for pod in replica.pods.values()
    )
