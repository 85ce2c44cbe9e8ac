"""Which groups come and go: scaling, surge and the rolling update of whole groups.

Invariant: a group below the partition keeps its revision, and as long as nothing fails by itself
never more than maxUnavailable of the wanted groups are unavailable, however many plans are made
and whenever one of them is cut short (modelserving spec 3.4, 3.7, 3.9).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from inferbus_workload_reconciler.actions import Motive, Reason
from inferbus_workload_reconciler.policy_budget import Limits, replacement_budget
from inferbus_workload_reconciler.policy_census import Fleet, GroupView
from inferbus_workload_reconciler.policy_groups import (
    missing_ordinals,
    place_in_words,
    replacement_order,
    surplus,
)
from inferbus_workload_reconciler.policy_surge import decide_surge, group_candidate
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
    surge = decide_surge(fleet, limits, removed.keys(), added.keys())
    removed |= surge.released
    added |= {
        ordinal: NewGroup(book.target, surge=True, motive=motive)
        for ordinal, motive in surge.added.items()
    }
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
    protected = ordinal < limits.held_below and current_revision != book.target
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
        [group_candidate(group) for group in base.values()], limits.wanted, limits.partition
    )
    return {
        one.ordinal: Motive(
            Reason.SCALE_DOWN,
            f"{len(base)} groups exist, {limits.wanted} are wanted;"
            f" group {one.ordinal} goes first: {place_in_words(one)}",
        )
        for one in victims
    }


def _replace_outdated(
    fleet: Fleet, limits: Limits, removed: Mapping[int, Motive], added: int
) -> dict[int, Motive]:
    outdated = {
        group.ordinal
        for group in fleet.groups.values()
        if not group.updated and group.ordinal >= limits.held_below and group.ordinal not in removed
    }
    unavailable = added + sum(
        ordinal not in outdated and (ordinal in removed or not group.running)
        for ordinal, group in fleet.groups.items()
    )
    present = len(fleet.groups) + added
    budget = replacement_budget(present, limits.wanted, limits.max_unavailable, unavailable)
    candidates = [group_candidate(fleet.groups[ordinal]) for ordinal in outdated]
    return {
        one.ordinal: Motive(
            Reason.ROLLING_UPDATE,
            f"group {one.ordinal} is outdated; {present} groups, {unavailable} of the others"
            f" unavailable, {limits.wanted} wanted, maxUnavailable {limits.max_unavailable}:"
            f" {budget} may go",
        )
        for one in replacement_order(candidates)[:budget]
    }
