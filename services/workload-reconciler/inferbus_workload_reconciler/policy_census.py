"""The fleet as it stands: groups, role replicas and slots, read from the pods alone.

Nothing is kept between two plans that pods can tell: a restarted reconciler sees the same fleet as
the one before it (defects MS_D4, MS_D11, MS_D12, MS_D20). Pods count only if this very object owns
them (MS_D18, MS_D47).

Invariant: every pod that this object owns and whose name fits stands in exactly one slot.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from inferbus_workload_reconciler.observed import Observed, ObservedPod, is_orphan, is_owned
from inferbus_workload_reconciler.policy_templates import Freshness, Shape, TemplateBook
from inferbus_workload_reconciler.workload import ReplicaId, RoleTemplate, Slot, WorkloadSpec

SURGE = "inferbus.dev/surge"
"""Annotation of the pods of a group that stands in while others are replaced."""


@dataclass(frozen=True)
class ReplicaView:
    """One role replica as it stands."""

    id: ReplicaId
    pods: Mapping[int, ObservedPod]
    """By index."""
    revision: str
    freshness: Freshness
    template: RoleTemplate | None
    """What it was built from; None when that isn't known any more."""

    @cached_property
    def live(self) -> tuple[tuple[int, ObservedPod], ...]:
        """Pods that are not being deleted, by index."""
        return tuple((index, pod) for index, pod in self.pods.items() if not pod.deleting)

    @property
    def deleting(self) -> bool:
        """Whether nothing of it remains but pods on their way out: the slot is still taken."""
        return not self.live

    @cached_property
    def missing(self) -> tuple[int, ...]:
        """Slots without any pod."""
        size = 0 if self.template is None else self.template.size
        return tuple(index for index in range(size) if index not in self.pods)

    @cached_property
    def surplus(self) -> tuple[ObservedPod, ...]:
        """Live pods in slots that its template doesn't have."""
        if self.template is None:
            return ()
        return tuple(pod for index, pod in self.live if index >= self.template.size)

    @property
    def complete(self) -> bool:
        """Every slot is filled, and no pod of it is being deleted."""
        return not self.missing and len(self.live) == len(self.pods)

    @cached_property
    def running(self) -> bool:
        """Complete, without surplus, and every pod ready (modelserving spec 3.10)."""
        return self.complete and not self.surplus and all(pod.ready for pod in self.pods.values())

    @property
    def cost(self) -> int:
        """What deleting it costs, by its pods' annotations."""
        return sum(pod.deletion_cost for pod in self.pods.values())


@dataclass(frozen=True)
class GroupView:
    """One group as it stands."""

    ordinal: int
    replicas: Mapping[ReplicaId, ReplicaView]
    """Ordered by role and ordinal."""
    revision: str
    """What it is pinned to."""
    updated: bool
    """Everything in it has the newest templates."""
    surge: bool
    shape: Shape | None
    """The roles it should have; None when its revision's snapshot is lost."""

    @cached_property
    def deleting(self) -> bool:
        """Whether nothing of it remains but pods on their way out."""
        return all(replica.deleting for replica in self.replicas.values())

    @cached_property
    def running(self) -> bool:
        """Every role has its replicas and all of them run (modelserving spec 3.10)."""
        live = [replica for replica in self.replicas.values() if not replica.deleting]
        if not live or not all(replica.running for replica in live):
            return False
        if self.shape is None:
            return True
        counts = Counter(replica.id.role for replica in live)
        return counts == Counter({role.template.name: role.replicas for role in self.shape})

    @property
    def cost(self) -> int:
        """What deleting it costs, by its pods' annotations."""
        return sum(replica.cost for replica in self.replicas.values())

    def of_role(self, role: str) -> list[ReplicaView]:
        """Its replicas of a role."""
        return [replica for replica in self.replicas.values() if replica.id.role == role]


@dataclass(frozen=True)
class Fleet:
    """All groups by ordinal, and the pods that stand in their way."""

    groups: Mapping[int, GroupView]
    orphans: tuple[ObservedPod, ...] = ()
    """Pods of an earlier object of the same name."""
    taken_names: frozenset[str] = frozenset()
    """Names of pods that this object doesn't own."""


Placed = list[tuple[Slot, ObservedPod]]


def place_pods(workload: WorkloadSpec, pods: Iterable[ObservedPod]) -> Placed:
    """The object's own pods with their slots."""
    slot_of = workload.convention.slot_of
    return [
        (slot, pod)
        for pod in pods
        if is_owned(pod.owner, workload)
        and (slot := slot_of(workload.name, pod.name, pod.labels)) is not None
    ]


def survey(book: TemplateBook, observed: Observed, placed: Placed) -> Fleet:
    """The fleet that the observed pods make up; `placed` as from `place_pods`."""
    workload = book.workload
    slots: dict[ReplicaId, dict[int, ObservedPod]] = {}
    for slot, pod in placed:
        slots.setdefault(slot.replica, {})[slot.worker_index] = pod
    groups: dict[int, dict[ReplicaId, ReplicaView]] = {}
    for replica in sorted(slots):
        groups.setdefault(replica.group, {})[replica] = _replica(book, replica, slots[replica])
    foreign = [pod for pod in observed.pods if not is_owned(pod.owner, workload)]
    return Fleet(
        groups={ordinal: _group(book, ordinal, groups[ordinal]) for ordinal in sorted(groups)},
        orphans=tuple(pod for pod in foreign if is_orphan(pod.owner, workload)),
        taken_names=frozenset(pod.name for pod in foreign),
    )


def _replica(book: TemplateBook, id_: ReplicaId, pods: dict[int, ObservedPod]) -> ReplicaView:
    ordered = {index: pods[index] for index in sorted(pods)}
    verdicts = {book.freshness(pod, id_.role) for pod in ordered.values()}
    mixed = Freshness.UNKNOWN if Freshness.UNKNOWN in verdicts else Freshness.OUTDATED
    freshness = verdicts.pop() if len(verdicts) == 1 else mixed
    revision = next(iter(ordered.values())).labels.get(book.workload.convention.revision_label, "")
    current = freshness is Freshness.CURRENT
    return ReplicaView(
        id=id_,
        pods=ordered,
        revision=revision,
        freshness=freshness,
        template=book.template(book.target if current else revision, id_.role),
    )


def _group(
    book: TemplateBook, ordinal: int, replicas: Mapping[ReplicaId, ReplicaView]
) -> GroupView:
    standing = [replica for replica in replicas.values() if not replica.deleting]
    judged = standing or list(replicas.values())
    updated = _is_updated(book, judged)
    revision = book.target if updated else _pinned_revision(book, judged)
    present = Counter(replica.id.role for replica in standing)
    pods = [pod for replica in replicas.values() for pod in replica.pods.values()]
    return GroupView(
        ordinal=ordinal,
        replicas=replicas,
        revision=revision,
        updated=updated,
        surge=ordinal >= book.workload.replicas and all(SURGE in pod.annotations for pod in pods),
        shape=book.shape(revision, present),
    )


def _is_updated(book: TemplateBook, replicas: list[ReplicaView]) -> bool:
    """Whether a group follows the newest revision.

    All its replicas must have the newest content. That alone doesn't tell a group of the newest
    revision that is still being built from an older one that lacks a role: the former has pods of
    the newest label, the latter is complete only if no role was added.
    """
    if any(replica.freshness is not Freshness.CURRENT for replica in replicas):
        return False
    if book.per_role or any(replica.revision == book.target for replica in replicas):
        return True
    roles = {role.name for role in book.workload.roles if role.replicas > 0}
    return roles <= {replica.id.role for replica in replicas}


def _pinned_revision(book: TemplateBook, replicas: list[ReplicaView]) -> str:
    """The revision most of its outdated replicas have; of equally many, the older one."""
    outdated = [one for one in replicas if one.freshness is not Freshness.CURRENT] or replicas
    counts = Counter(replica.revision for replica in outdated)
    snapshots = book.history.snapshots

    def rank(revision: str) -> tuple[int, int, str]:
        number = snapshots[revision].number if revision in snapshots else 0
        return (-counts[revision], number, revision)

    return min(counts, key=rank)
