"""When a pod that failed is given up, and how long to wait before the next attempt.

A container that restarts in place and becomes ready again is no failure, and one that turns
unready without having restarted isn't either (modelserving spec 3.11, defect MS_D13). The first
failure is acted on after the object's grace period; each further one of the same unit waits longer,
as a kubelet does between restarts, while the container goes on trying in place (MS_D14).

Invariant: a pod is given up only after `due_ms`, which was fixed when its failure was first seen,
and one failure lengthens the back-off once.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from inferbus_workload_reconciler.observed import ObservedPod
from inferbus_workload_reconciler.policy_memory import Failing, Memory, Setback
from inferbus_workload_reconciler.workload import RecoveryPolicy, ReplicaId, WorkloadSpec

FIRST_DELAY_MS = 10_000
LONGEST_DELAY_MS = 300_000
"""Back-off of container restarts in Kubernetes: 10 s, doubling, at most 5 min."""

RECOVERED_AFTER_MS = 600_000
"""A unit that ran well for this long starts again without a delay."""


@dataclass(frozen=True)
class FailureReview:
    """What is known about failures after a look at the pods."""

    failing: Mapping[str, Failing]
    forgiven_restarts: Mapping[str, int]
    due: frozenset[str]
    """Uids of pods to give up now."""


def delay_ms(setback: Setback | None) -> int:
    """How long the next attempt waits after that many failures."""
    if setback is None or setback.failures == 0:
        return 0
    doublings = min(setback.failures - 1, 30)
    return min(FIRST_DELAY_MS << doublings, LONGEST_DELAY_MS)


def budget_spent(setback: Setback) -> bool:
    """Whether a unit failed so often that attempts have become as rare as they get."""
    return delay_ms(setback) >= LONGEST_DELAY_MS


def recovery_unit(workload: WorkloadSpec, replica: ReplicaId) -> str:
    """What is recreated together, as it is named in the memory."""
    group = workload.recovery is RecoveryPolicy.GROUP
    return str(replica.group) if group else str(replica)


def review_failures(
    workload: WorkloadSpec,
    pods: Iterable[tuple[ReplicaId, ObservedPod]],
    memory: Memory,
    now_ms: int,
) -> FailureReview:
    """Look at all live pods; what is remembered about others is dropped.

    With recoveryPolicy None nothing is ever due: restarts are left to the kubelet (MS_D2).
    """
    failing: dict[str, Failing] = {}
    forgiven: dict[str, int] = {}
    for replica, pod in pods:
        tolerated = memory.forgiven_restarts.get(pod.uid, 0)
        if pod.ready:
            tolerated = pod.restarts
        if tolerated:
            forgiven[pod.uid] = tolerated
        if workload.recovery is not RecoveryPolicy.NONE and is_broken(pod, tolerated):
            setback = memory.setbacks.get(recovery_unit(workload, replica))
            due_ms = now_ms + workload.restart_grace_ms + delay_ms(setback)
            failing[pod.uid] = memory.failing.get(pod.uid) or Failing(due_ms)
    due = frozenset(uid for uid, one in failing.items() if one.due_ms <= now_ms)
    return FailureReview(failing, forgiven, due)


def is_broken(pod: ObservedPod, forgiven_restarts: int) -> bool:
    """Whether a pod failed, or restarted since it last was ready and isn't ready."""
    if pod.ready or pod.deleting:
        return False
    if pod.phase == "Failed":
        return True
    return pod.phase in ("Running", "Pending") and pod.restarts > forgiven_restarts


def count_failures(
    setbacks: Mapping[str, Setback],
    failing: Mapping[str, Failing],
    given_up: Mapping[str, str],
    now_ms: int,
) -> tuple[dict[str, Setback], dict[str, Failing]]:
    """Note what is given up now: `given_up` maps pod uids to their unit.

    Several pods of one unit that go together are one failure.
    """
    counted = dict(setbacks)
    noted = dict(failing)
    fresh = {unit for uid, unit in given_up.items() if not failing[uid].counted}
    for unit in fresh:
        before = counted.get(unit)
        counted[unit] = Setback(1 + (before.failures if before else 0), now_ms)
    for uid in given_up:
        noted[uid] = replace(failing[uid], counted=True)
    return counted, noted


def forget_recovered(
    setbacks: Mapping[str, Setback], running_since_ms: Mapping[str, int | None], now_ms: int
) -> tuple[dict[str, Setback], int | None]:
    """Drop the setbacks of units that ran well for long; also when the next one will be dropped.

    `running_since_ms` holds every unit that exists or is being built: since when all its pods have
    been ready, or None.
    """
    kept: dict[str, Setback] = {}
    next_ms: int | None = None
    for unit, setback in setbacks.items():
        if unit not in running_since_ms:
            continue
        since_ms = running_since_ms[unit]
        if since_ms is None:
            kept[unit] = setback
            continue
        recovered_ms = since_ms + RECOVERED_AFTER_MS
        if recovered_ms > now_ms:
            kept[unit] = setback
            next_ms = recovered_ms if next_ms is None else min(next_ms, recovered_ms)
    return kept, next_ms
