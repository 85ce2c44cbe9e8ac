"""The planner: from what should be and what is to what to do next.

`plan` is level-triggered: it looks at everything anew, never at what changed. Carrying its actions
out, in whole or in part, and planning again leads to the same end, so a crash, a lost reply or a
second planner at work does no harm.

Invariant: pure; equal arguments give an equal plan, and a fleet that is as it should be gives a
plan without actions.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from inferbus_contracts.events.route import ConditionFact
from inferbus_workload_reconciler.actions import Action, WorkloadEvent
from inferbus_workload_reconciler.observed import Observed
from inferbus_workload_reconciler.policy_adoption import target_revision
from inferbus_workload_reconciler.policy_census import Fleet, place_pods, survey
from inferbus_workload_reconciler.policy_decisions import Decisions, decide, project
from inferbus_workload_reconciler.policy_doubts import doubts
from inferbus_workload_reconciler.policy_events import role_events
from inferbus_workload_reconciler.policy_gang import startup_steps
from inferbus_workload_reconciler.policy_memory import Memory
from inferbus_workload_reconciler.policy_outcome import next_check, remember
from inferbus_workload_reconciler.policy_pod_groups import decide_pod_groups
from inferbus_workload_reconciler.policy_revisions import RevisionHistory
from inferbus_workload_reconciler.policy_status import (
    WorkloadStatus,
    representative_ordinal,
    settle_current_revision,
    status_document,
)
from inferbus_workload_reconciler.policy_steps import render_steps
from inferbus_workload_reconciler.policy_templates import TemplateBook
from inferbus_workload_reconciler.workload import WorkloadSpec


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What to do, and what is then to be said about it.

    The shell stores `memory` if it changed, carries the actions out in order, and writes `status`.
    If the action that creates a revision fails it stops there; after any other failure it goes on
    with the rest. After a failure it plans again.
    """

    actions: tuple[Action, ...]
    memory: Memory
    status: Mapping[str, Any]
    """The object's whole status."""
    summary: WorkloadStatus
    fleet: Fleet
    """The fleet that was looked at."""
    events: tuple[WorkloadEvent, ...]
    doubts: tuple[ConditionFact, ...]
    """What keeps the workload from being as it should be, or is done otherwise than it says."""
    next_check_ms: int | None
    """When to plan again though nothing changed; None: not needed."""


def is_stale(observed: Observed, memory: Memory) -> bool:
    """Whether a view is older than the memory, as the caches of a second reconciler may be.

    Such a view must not be planned for: pods that the memory knows to have existed would look lost.
    The shell waits for a newer one.
    """
    shown = observed.revision if observed.complete_to is None else observed.complete_to
    return shown < memory.view


def plan(
    workload: WorkloadSpec,
    history: RevisionHistory,
    observed: Observed,
    memory: Memory,
    previous_status: Mapping[str, Any],
    now_ms: int,
) -> Plan:
    """Plan one workload.

    `memory` and `previous_status` are what an earlier plan left (`parse_memory`; empty at first),
    and `observed` isn't stale beside them. `now_ms` is virtual time in milliseconds and may stand
    still, but not run backwards.
    """
    placed = place_pods(workload, observed.pods)
    target = target_revision(workload, history, placed)
    book = TemplateBook(workload=workload, history=history, target=target)
    steps = startup_steps(workload, observed.cluster)
    decisions = decide(book, survey(book, observed, placed), memory, steps, now_ms)
    pod_groups = decide_pod_groups(decisions, observed)
    decisions = decisions.without_pods(pod_groups.waiting)
    summary = _summarise(decisions)
    after = remember(decisions, observed, memory, summary, now_ms)
    found = tuple(doubts(decisions, observed, pod_groups, after, now_ms))
    return Plan(
        actions=render_steps(decisions, observed, pod_groups, now_ms),
        memory=after,
        status=status_document(workload, summary, previous_status, found, now_ms),
        summary=summary,
        fleet=decisions.fleet,
        events=tuple(role_events(decisions)),
        doubts=found,
        next_check_ms=next_check(decisions, observed, pod_groups, after, now_ms),
    )


def _summarise(decisions: Decisions) -> WorkloadStatus:
    book, limits = decisions.book, decisions.limits
    workload = book.workload
    groups = project(decisions)
    first_role = workload.roles[0].name
    replicas = (replica.id for replica in decisions.standing_replicas())
    ordinal = representative_ordinal(replicas, first_role)
    return WorkloadStatus(
        generation=workload.generation,
        wanted=limits.wanted,
        groups=groups,
        current_revision=settle_current_revision(
            decisions.current_revision, groups, book.target, limits, book.history
        ),
        update_revision=book.target,
        label_selector=workload.convention.label_selector(workload.name, first_role, ordinal),
        partition=limits.partition,
    )
