"""The status of a workload, counted from what stands and what is being done.

Everything is counted anew from the pods each time (defect MS_D11); `observedGeneration` is the
generation that was acted on, not one read later (MS_D21).

Invariant: `currentRevision` names a revision that groups may still be built from until nothing
needs it: it moves on only when every group has the newest templates and runs (MS_D9).
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from inferbus_contracts.conditions import stamp
from inferbus_contracts.events.route import ConditionFact
from inferbus_contracts.resources.kinds import LEADER_WORKER_SET
from inferbus_workload_reconciler.policy_budget import Limits
from inferbus_workload_reconciler.policy_conditions import OCCASIONAL, phase_conditions
from inferbus_workload_reconciler.policy_revisions import RevisionHistory
from inferbus_workload_reconciler.workload import ReplicaId, WorkloadSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupStatus:
    """One group as it will stand once the plan is carried out."""

    ordinal: int
    revision: str
    updated: bool
    running: bool
    deleting: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadStatus:
    """The counts and revisions of a workload (modelserving spec 3.13)."""

    generation: int
    wanted: int
    groups: tuple[GroupStatus, ...]
    current_revision: str
    update_revision: str
    label_selector: str
    partition: int

    @property
    def replicas(self) -> int:
        """All groups, those being deleted too."""
        return len(self.groups)

    @property
    def available(self) -> int:
        """Groups that run."""
        return sum(group.running for group in self.groups)

    @property
    def updated(self) -> int:
        """Groups of the newest revision that are not being deleted."""
        return sum(group.updated and not group.deleting for group in self.groups)

    @property
    def current(self) -> int:
        """Groups of other revisions that are not being deleted; at rest all groups."""
        resting = self.updated == self.available == self.replicas == self.wanted
        if self.partition == 0 and resting:
            return self.updated
        return sum(not group.updated and not group.deleting for group in self.groups)

    @property
    def settled(self) -> bool:
        """Whether every group runs and none is missing."""
        return all(group.running for group in self.groups) and self.available >= self.wanted

    @property
    def rolling(self) -> bool:
        """Whether an update is under way: a group that may change hasn't changed, or isn't up."""
        return self.current_revision != self.update_revision and any(
            not (group.updated and group.running)
            for group in self.groups
            if group.ordinal >= self.partition
        )

    @property
    def unsettled(self) -> tuple[int, ...]:
        """Ordinals of groups that don't run."""
        return tuple(group.ordinal for group in self.groups if not group.running)


def settle_current_revision(
    previous: str,
    groups: Iterable[GroupStatus],
    target: str,
    limits: Limits,
    history: RevisionHistory,
) -> str:
    """The revision that groups below the partition are built from.

    It stays while a group uses it. Otherwise it is the most common of the older revisions in use,
    and the newest once all groups have that and run. Without any group it stays as long as a
    partition may ask for it again.
    """
    standing = list(groups)
    if previous and any(group.revision == previous for group in standing):
        return previous
    outdated = [one.revision for one in standing if not one.updated and not one.deleting]
    if outdated:
        return history.most_common(outdated)
    if not standing:
        return previous if previous and limits.held_below > 0 else target
    done = all(group.updated and group.running for group in standing)
    return target if not previous or (done and len(standing) >= limits.wanted) else previous


def representative_ordinal(replicas: Iterable[ReplicaId], role: str) -> int:
    """The replica of a role that most groups have, the lowest of equals; 0 without any.

    A selector of one pod per group has to name a replica that exists, and after a shrink by
    deletion cost that need not be the first (defect MS_D38).
    """
    counts = Counter(replica.ordinal for replica in replicas if replica.role == role)
    return min(counts, key=lambda ordinal: (-counts[ordinal], ordinal), default=0)


def status_document(
    workload: WorkloadSpec,
    status: WorkloadStatus,
    previous: Mapping[str, Any],
    extra: Iterable[ConditionFact],
    now_ms: int,
) -> dict[str, Any]:
    """The object's status; conditions that say the same as in `previous` keep their times."""
    conditions = phase_conditions(
        settled=status.settled,
        rolling=status.rolling,
        unsettled=status.unsettled,
        available=status.available,
        wanted=status.wanted,
    )
    leads = workload.key.kind == LEADER_WORKER_SET
    document = _leader_worker_status(status) if leads else _serving_status(status)
    stored = previous.get("conditions") or ()
    stamped = stamp(stored, (*conditions, *extra), status.generation, now_ms, occasional=OCCASIONAL)
    return {"observedGeneration": status.generation, **document, "conditions": stamped}


def _serving_status(status: WorkloadStatus) -> dict[str, Any]:
    return {
        "replicas": status.replicas,
        "availableReplicas": status.available,
        "updatedReplicas": status.updated,
        "currentReplicas": status.current,
        "currentRevision": status.current_revision,
        "updateRevision": status.update_revision,
        "labelSelector": status.label_selector,
    }


def _leader_worker_status(status: WorkloadStatus) -> dict[str, Any]:
    """LeaderWorkerSet's own names."""
    return {
        "replicas": status.replicas,
        "readyReplicas": status.available,
        "updatedReplicas": status.updated,
        "hpaPodSelector": status.label_selector,
    }
