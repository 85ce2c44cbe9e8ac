"""Doubts: what keeps a workload from being as it should be, or is done otherwise than it says.

Invariant: a doubt names what to look at; none is raised about a fleet that is merely starting.
"""

from collections.abc import Iterator

from inferbus_contracts.conditions import condition
from inferbus_contracts.events.route import ConditionFact
from inferbus_contracts.resources.annotations import PAUSED as PAUSED_ANNOTATION
from inferbus_workload_reconciler.observed import Observed
from inferbus_workload_reconciler.policy_conditions import (
    NAME_TAKEN,
    PAUSED,
    RECOVERY_BACK_OFF,
    SNAPSHOT_LOST,
    STALLED,
    STARTUP_ORDER_IGNORED,
)
from inferbus_workload_reconciler.policy_decisions import Decisions
from inferbus_workload_reconciler.policy_gang import startup_steps
from inferbus_workload_reconciler.policy_gang_doubts import scheduling_doubts
from inferbus_workload_reconciler.policy_memory import Memory
from inferbus_workload_reconciler.policy_pod_groups import PodGroupDecision
from inferbus_workload_reconciler.policy_progress import deadline_ms
from inferbus_workload_reconciler.policy_recovery import budget_spent, delay_ms
from inferbus_workload_reconciler.policy_templates import Freshness


def doubts(
    decisions: Decisions,
    observed: Observed,
    pod_groups: PodGroupDecision,
    memory: Memory,
    now_ms: int,
) -> Iterator[ConditionFact]:
    """The doubts after a plan, as conditions that are True; `memory` is the one after the plan."""
    yield from scheduling_doubts(decisions, observed, pod_groups)
    yield from _startup_ignored(decisions, observed)
    yield from _paused(decisions)
    yield from _stalled(decisions, memory, now_ms)
    yield from _back_off(memory, now_ms)
    yield from _lost_snapshots(decisions)
    yield from _taken_names(decisions, pod_groups)


def _startup_ignored(decisions: Decisions, observed: Observed) -> Iterator[ConditionFact]:
    workload = decisions.book.workload
    if workload.startup != startup_steps(workload, observed.cluster):
        yield _true(
            STARTUP_ORDER_IGNORED,
            "GangStartsAtOnce",
            "the pods of a gang are created together: none is scheduled before all exist; use"
            " another scheduler to start them in steps",
        )


def _paused(decisions: Decisions) -> Iterator[ConditionFact]:
    if decisions.book.workload.paused:
        behind = sum(not group.updated for group in decisions.fleet.groups.values())
        yield _true(
            PAUSED,
            "PausedByAnnotation",
            f"{behind} groups wait to be updated; remove {PAUSED_ANNOTATION} to go on",
        )


def _stalled(decisions: Decisions, memory: Memory, now_ms: int) -> Iterator[ConditionFact]:
    overdue_ms = deadline_ms(decisions, memory.progress)
    if overdue_ms is not None and overdue_ms <= now_ms:
        limit_ms = decisions.book.workload.progress_deadline_ms or 0
        yield _true(
            STALLED,
            "ProgressDeadlineExceeded",
            f"nothing came closer to what is wanted for {limit_ms // 1000} s; see the pods that"
            " aren't ready, or apply the templates that ran before",
        )


def _back_off(memory: Memory, now_ms: int) -> Iterator[ConditionFact]:
    waiting = any(one.due_ms > now_ms for one in memory.failing.values())
    if not memory.setbacks or not waiting:
        return
    unit, worst = max(memory.setbacks.items(), key=lambda item: (item[1].failures, item[0]))
    yield _true(
        RECOVERY_BACK_OFF,
        "FailureBudgetSpent" if budget_spent(worst) else "BackOff",
        f"{unit} was recreated {worst.failures} times without running well;"
        f" the next attempt waits {delay_ms(worst) // 1000} s; see the logs of its pods",
    )


def _lost_snapshots(decisions: Decisions) -> Iterator[ConditionFact]:
    book = decisions.book
    groups = decisions.fleet.groups.values()
    lost = {group.revision for group in groups if group.shape is None}
    lost |= {
        replica.revision
        for group in groups
        for replica in group.replicas.values()
        if replica.freshness is Freshness.UNKNOWN
    }
    protects = any(
        new.revision == book.target
        for ordinal, new in decisions.groups.added.items()
        if ordinal < decisions.limits.held_below
    )
    current = decisions.current_revision
    if protects and current != book.target:
        lost.add(current)
    if lost:
        yield _true(
            SNAPSHOT_LOST,
            "SnapshotMissing",
            f"no ControllerRevision holds revision {', '.join(sorted(lost))}: its groups are left"
            " as they are, and what is lost of them is built from the newest revision",
        )


def _taken_names(decisions: Decisions, pod_groups: PodGroupDecision) -> Iterator[ConditionFact]:
    workload = decisions.book.workload
    orphans = {pod.name for pod in decisions.fleet.orphans}
    taken = sorted(
        name
        for decision in decisions.members.values()
        for new in decision.pods
        if (name := workload.convention.pod_name(workload.name, new.slot))
        in decisions.fleet.taken_names - orphans
    )
    if taken:
        yield _true(
            NAME_TAKEN,
            "ForeignPod",
            f"pod {taken[0]} exists and belongs to something else; delete or rename it",
        )
    elif pod_groups.foreign:
        yield _true(
            NAME_TAKEN,
            "ForeignPodGroup",
            f"PodGroup {pod_groups.foreign[0]} exists and belongs to something else; its group"
            " gets no pods until it is deleted or renamed",
        )


def _true(type_: str, reason: str, message: str) -> ConditionFact:
    return condition(type_, True, reason, message)
