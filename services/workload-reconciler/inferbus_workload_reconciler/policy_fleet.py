"""Which groups come and go: scaling, surge and the rolling update of whole groups.

Invariant: a group below the partition keeps its revision, and as long as nothing fails by itself
never more than maxUnavailable of the wanted groups are unavailable, however many plans are made
and whenever one of them is cut short (modelserving spec 3.4, 3.7, 3.9).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count, islice
from typing import NamedTuple

from inferbus_workload_reconciler.actions import Motive, Reason
from inferbus_workload_reconciler.policy_budget import (
    replacement_budget,
    resolve,
    unavailable_limit,
)
from inferbus_workload_reconciler.policy_census import Fleet, GroupView
from inferbus_workload_reconciler.policy_groups import (
    BATCH,
    Candidate,
    missing_ordinals,
    place_in_words,
    replacement_order,
    surplus,
)
from inferbus_workload_reconciler.policy_templates import TemplateBook


class NewGroup(NamedTuple):
    """A group to build."""

    revision: str
    surge: bool
    motive: Motive


@dataclass(frozen=True)
class FleetDecision:
    """Groups to delete and to build, by ordinal."""

    removed: Mapping[int, Motive]
    added: Mapping[int, NewGroup]


@dataclass(frozen=True, slots=True)
class Limits:
    """The rollout's knobs as counts."""

    wanted: int
    partition: int
    max_unavailable: int
    max_surge: int


def rollout_limits(book: TemplateBook) -> Limits:
    """Resolve the rollout's knobs against the replicas wanted now.

    With RoleRollingUpdate only the knobs of each role count.
    """
    rollout = book.workload.rollout
    wanted = book.workload.replicas
    surge = 0 if book.per_role else resolve(rollout.max_surge, wanted, round_up=True)
    return Limits(
        wanted=wanted,
        partition=0 if book.per_role else resolve(rollout.partition, wanted, round_up=True),
        max_unavailable=unavailable_limit(rollout.max_unavailable, wanted, surge),
        max_surge=surge,
    )


def decide_fleet(
    book: TemplateBook,
    fleet: Fleet,
    limits: Limits,
    current_revision: str,
    lost: frozenset[int],
) -> FleetDecision:
    """Which groups to delete and to build now.

    `current_revision` is what groups below the partition are built from; `lost` are the ordinals of
    groups that once were complete and have vanished though nobody decided so.
    """
    base = {ordinal: group for ordinal, group in fleet.groups.items() if not group.surge}
    added = {
        ordinal: _new_group(book, ordinal, limits, current_revision, lost, len(base))
        for ordinal in missing_ordinals(base.keys(), limits.wanted)
    }
    removed = _scale_down(base, limits)
    _adapt_surge(book, fleet, limits, removed, added)
    if not book.per_role:
        removed |= _replace_outdated(fleet, limits, removed, len(added))
    return FleetDecision(removed, added)


def _new_group(
    book: TemplateBook,
    ordinal: int,
    limits: Limits,
    current_revision: str,
    lost: frozenset[int],
    present: int,
) -> NewGroup:
    protected = ordinal < limits.partition and current_revision != book.target
    buildable = protected and book.history.get(current_revision) is not None
    revision = current_revision if buildable else book.target
    numbers = f"{present} of {limits.wanted} groups exist, group {ordinal} is missing"
    if ordinal in lost:
        motive = Motive(Reason.POD_LOST, f"all pods of group {ordinal} are gone; {numbers}")
    elif revision == book.target and current_revision not in ("", book.target):
        motive = Motive(Reason.ROLLING_UPDATE, f"{numbers}; built from revision {revision}")
    else:
        motive = Motive(Reason.SCALE_UP, numbers)
    return NewGroup(revision, surge=False, motive=motive)


def _scale_down(base: Mapping[int, GroupView], limits: Limits) -> dict[int, Motive]:
    if len(base) <= limits.wanted:
        return {}
    victims = surplus(
        [_candidate(group) for group in base.values()], limits.wanted, limits.partition
    )
    return {
        one.ordinal: Motive(
            Reason.SCALE_DOWN,
            f"{len(base)} groups exist, {limits.wanted} are wanted;"
            f" group {one.ordinal} goes first: {place_in_words(one)}",
        )
        for one in victims
    }


def _adapt_surge(
    book: TemplateBook,
    fleet: Fleet,
    limits: Limits,
    removed: dict[int, Motive],
    added: dict[int, NewGroup],
) -> None:
    """Keep as many groups beyond the wanted ones as still stand in for others.

    They take ordinals from `wanted` up and leave them at the end, so that the ordinals of a fleet
    stay dense over an update.
    """
    surge = {ordinal: group for ordinal, group in fleet.groups.items() if group.surge}
    base = [group for ordinal, group in fleet.groups.items() if ordinal not in surge]
    unprotected = [group for group in base if group.ordinal >= limits.partition]
    outdated = any(not group.updated for group in unprotected)
    unfinished = sum(not (group.updated and group.running) for group in unprotected)
    unfinished += sum(ordinal >= limits.partition for ordinal in added)
    wanted = min(limits.max_surge, unfinished) if outdated or surge else 0
    numbers = f"{unfinished} groups are still to be replaced, maxSurge is {limits.max_surge}"
    free = (ordinal for ordinal in count(limits.wanted) if ordinal not in fleet.groups)
    for ordinal in islice(free, min(BATCH, max(0, wanted - len(surge)))):
        added[ordinal] = NewGroup(book.target, True, Motive(Reason.SURGE, numbers))
    running = sum(group.running for group in fleet.groups.values() if group.ordinal not in removed)
    spare = running - (limits.wanted - limits.max_unavailable)
    for one in replacement_order(map(_candidate, surge.values()))[: max(0, len(surge) - wanted)]:
        if one.running and spare <= 0:
            break
        spare -= one.running
        removed[one.ordinal] = Motive(Reason.SURGE_DONE, numbers)


def _replace_outdated(
    fleet: Fleet, limits: Limits, removed: Mapping[int, Motive], added: int
) -> dict[int, Motive]:
    outdated = {
        group.ordinal
        for group in fleet.groups.values()
        if not group.updated and group.ordinal >= limits.partition and group.ordinal not in removed
    }
    unavailable = added + sum(
        ordinal not in outdated and (ordinal in removed or not group.running)
        for ordinal, group in fleet.groups.items()
    )
    present = len(fleet.groups) + added
    budget = replacement_budget(present, limits.wanted, limits.max_unavailable, unavailable)
    candidates = [_candidate(fleet.groups[ordinal]) for ordinal in outdated]
    return {
        one.ordinal: Motive(
            Reason.ROLLING_UPDATE,
            f"group {one.ordinal} is outdated; {present} groups, {unavailable} of the others"
            f" unavailable, {limits.wanted} wanted, maxUnavailable {limits.max_unavailable}:"
            f" {budget} may go",
        )
        for one in replacement_order(candidates)[:budget]
    }


def _candidate(group: GroupView) -> Candidate:
    return Candidate(group.ordinal, group.running, group.deleting, group.cost)
