"""All decisions of one plan, before they become actions and a status.

Groups are decided first, then what happens inside those that stay and those that come.

Invariant: a group that goes, or has nothing left but pods on their way out, has no decision inside.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from inferbus_contracts.resources.annotations import StartupStep
from inferbus_workload_reconciler.policy_budget import Limits, rollout_limits
from inferbus_workload_reconciler.policy_census import Fleet, GroupView, ReplicaView
from inferbus_workload_reconciler.policy_fleet import FleetDecision, NewGroup, decide_fleet
from inferbus_workload_reconciler.policy_members import MemberDecision, decide_members
from inferbus_workload_reconciler.policy_memory import Memory, Standing
from inferbus_workload_reconciler.policy_recovery import FailureReview, review_failures
from inferbus_workload_reconciler.policy_startup import startable
from inferbus_workload_reconciler.policy_status import GroupStatus, settle_current_revision
from inferbus_workload_reconciler.policy_templates import TemplateBook
from inferbus_workload_reconciler.workload import ReplicaId

Known = Mapping[int, Mapping[ReplicaId, Standing]]
"""By group: replicas that once were complete."""


@dataclass(frozen=True, kw_only=True)
class Decisions:
    """What a plan rests on."""

    book: TemplateBook
    fleet: Fleet
    limits: Limits
    known: Known
    current_revision: str
    failures: FailureReview
    groups: FleetDecision
    members: Mapping[int, MemberDecision]

    def group(self, ordinal: int) -> GroupView:
        """A group that stands, or one that is to be built."""
        standing = self.fleet.groups.get(ordinal)
        return standing or empty_group(self.book, ordinal, self.groups.added[ordinal])

    def without_pods(self, ordinals: Collection[int]) -> "Decisions":
        """The same, but these groups get no pods for now."""
        held = {
            ordinal: replace(decision, pods=()) if ordinal in ordinals else decision
            for ordinal, decision in self.members.items()
        }
        return replace(self, members=held) if ordinals else self

    def staying(self) -> Iterator[tuple[GroupView, MemberDecision]]:
        """Groups that stay, with what happens inside."""
        for ordinal, group in self.fleet.groups.items():
            if ordinal in self.members:
                yield group, self.members[ordinal]

    def standing_replicas(self) -> Iterator[ReplicaView]:
        """Live role replicas that stay as they are."""
        for group, decision in self.staying():
            if decision.recreated_group is None:
                for replica in group.replicas.values():
                    gone = replica.id in decision.removed or replica.id in decision.recreated
                    if not gone and not replica.deleting:
                        yield replica


def decide(
    book: TemplateBook,
    fleet: Fleet,
    memory: Memory,
    steps: frozenset[StartupStep],
    now_ms: int,
) -> Decisions:
    """Decide everything for the fleet as it stands.

    `steps` are those in which groups start; `now_ms` is virtual time.
    """
    limits = rollout_limits(book.workload)
    known = _by_group(memory)
    current = memory.current_revision or _oldest_in_use(book, fleet, limits)
    live = (
        (replica.id, pod)
        for group in fleet.groups.values()
        for replica in group.replicas.values()
        for pod in replica.live
    )
    failures = review_failures(book.workload, live, memory, now_ms)
    groups = decide_fleet(book, fleet, limits, current, frozenset(known) - fleet.groups.keys())
    members = {
        ordinal: decide_members(book, group, known.get(ordinal, {}), current, failures)
        for ordinal, group in fleet.groups.items()
        if ordinal not in groups.removed and not group.deleting
    }
    members |= {
        ordinal: _build_group(book, ordinal, new, current, failures)
        for ordinal, new in groups.added.items()
    }
    decisions = Decisions(
        book=book,
        fleet=fleet,
        limits=limits,
        known=known,
        current_revision=current,
        failures=failures,
        groups=groups,
        members=members,
    )
    return _in_steps(decisions, steps) if steps else decisions


def _in_steps(decisions: Decisions, steps: frozenset[StartupStep]) -> Decisions:
    members = {
        ordinal: replace(decision, pods=startable(steps, decisions.group(ordinal), decision.pods))
        for ordinal, decision in decisions.members.items()
    }
    return replace(decisions, members=members)


def _build_group(
    book: TemplateBook, ordinal: int, new: NewGroup, current: str, failures: FailureReview
) -> MemberDecision:
    decision = decide_members(book, empty_group(book, ordinal, new), {}, current, failures)
    pods = tuple(pod._replace(motive=new.motive) for pod in decision.pods)
    return replace(decision, pods=pods)


def empty_group(book: TemplateBook, ordinal: int, new: NewGroup) -> GroupView:
    """A group that is to be built, without anything in it."""
    return GroupView(
        ordinal=ordinal,
        replicas={},
        revision=new.revision,
        updated=new.revision == book.target,
        surge=new.surge,
        shape=book.shape(new.revision, {}),
    )


def _by_group(memory: Memory) -> Known:
    known: dict[int, dict[ReplicaId, Standing]] = {}
    for replica, standing in memory.replicas.items():
        known.setdefault(replica.group, {})[replica] = standing
    return known


def _oldest_in_use(book: TemplateBook, fleet: Fleet, limits: Limits) -> str:
    """The revision to protect where none is remembered."""
    return settle_current_revision(
        "", map(group_status, fleet.groups.values()), book.target, limits, book.history
    )


def group_status(group: GroupView) -> GroupStatus:
    """A group as it stands, without what is decided about it."""
    return GroupStatus(
        ordinal=group.ordinal,
        revision=group.revision,
        updated=group.updated,
        running=group.running,
        deleting=group.deleting,
    )


def project(decisions: Decisions) -> tuple[GroupStatus, ...]:
    """The groups as they stand once everything decided is carried out."""
    projected = {
        ordinal: _projected(group, decisions.members.get(ordinal))
        for ordinal, group in decisions.fleet.groups.items()
    }
    for ordinal, new in decisions.groups.added.items():
        updated = new.revision == decisions.book.target
        projected[ordinal] = GroupStatus(
            ordinal=ordinal, revision=new.revision, updated=updated, running=False, deleting=False
        )
    return tuple(projected[ordinal] for ordinal in sorted(projected))


def _projected(group: GroupView, decision: MemberDecision | None) -> GroupStatus:
    status = group_status(group)
    if decision is None or decision.recreated_group is not None:
        return replace(status, running=False, deleting=True)
    return replace(status, running=status.running and decision.changes_nothing)


def recreated_uids(decisions: Decisions) -> Iterable[tuple[str, ReplicaId]]:
    """Failed pods that are given up now, with the replica they are in."""
    for group, decision in decisions.staying():
        for replica in group.replicas.values():
            if decision.recreated_group is not None or replica.id in decision.recreated:
                for pod in replica.live:
                    if pod.uid in decisions.failures.due:
                        yield pod.uid, replica.id
