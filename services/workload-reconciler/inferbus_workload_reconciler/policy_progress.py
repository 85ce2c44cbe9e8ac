"""Whether a workload comes closer to what is wanted, and since when it hasn't (MS_D42).

Progress is a new best count of updated groups and running role replicas. A pod that comes and goes
never makes a new best, so that a crash loop doesn't put the deadline off.

Invariant: nothing is measured without a deadline, nor while everything is as wanted.
"""

from inferbus_workload_reconciler.policy_decisions import Decisions
from inferbus_workload_reconciler.policy_memory import Progress
from inferbus_workload_reconciler.policy_status import WorkloadStatus


def follow_progress(
    decisions: Decisions, summary: WorkloadStatus, before: Progress | None, now_ms: int
) -> Progress | None:
    """What to remember of the progress after a look at the fleet."""
    workload = decisions.book.workload
    if workload.progress_deadline_ms is None or summary.settled:
        return None
    best = summary.updated + sum(replica.running for replica in decisions.standing_replicas())
    same = before is not None and before.generation == summary.generation
    if before is not None and same and best <= before.best:
        return before
    return Progress(summary.generation, best, now_ms)


def deadline_ms(decisions: Decisions, progress: Progress | None) -> int | None:
    """When progress is overdue, in virtual time; None while nothing is awaited or all is paused."""
    limit_ms = decisions.book.workload.progress_deadline_ms
    if progress is None or limit_ms is None or decisions.book.workload.paused:
        return None
    return progress.since_ms + limit_ms
