"""Groups that stand in for others while those are replaced: maxSurge.

They take ordinals from the wanted number up and leave them at the end, so that the ordinals of a
fleet stay dense over an update (ruling F6, modelserving spec 3.7.4).

Invariant: there are never more of them than maxSurge, nor than groups still to be replaced, and
letting one go never takes the available groups below what maxUnavailable allows.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import count, islice

from inferbus_workload_reconciler.actions import Motive, Reason
from inferbus_workload_reconciler.policy_budget import Limits
from inferbus_workload_reconciler.policy_census import Fleet, GroupView
from inferbus_workload_reconciler.policy_groups import BATCH, Candidate, replacement_order


@dataclass(frozen=True)
class SurgeDecision:
    """Groups beyond the wanted ones to let go and to build, by ordinal."""

    released: Mapping[int, Motive]
    added: Mapping[int, Motive]


def decide_surge(
    fleet: Fleet, limits: Limits, leaving: Collection[int], coming: Collection[int]
) -> SurgeDecision:
    """Adapt the surge to what is left to do.

    `leaving` are the ordinals that scaling takes away, `coming` those that it adds.
    """
    surge = [group for group in fleet.groups.values() if group.surge]
    open_groups = [
        group
        for group in fleet.groups.values()
        if not group.surge and group.ordinal >= limits.held_below
    ]
    updating = bool(surge) or any(not group.updated for group in open_groups)
    unfinished = sum(not (group.updated and group.running) for group in open_groups)
    unfinished += sum(ordinal >= limits.held_below for ordinal in coming)
    wanted = min(limits.max_surge, unfinished) if updating else 0
    cause = f"{unfinished} groups are still to be replaced, maxSurge is {limits.max_surge}"
    free = (ordinal for ordinal in count(limits.wanted) if ordinal not in fleet.groups)
    lacking = min(BATCH, max(0, wanted - len(surge)))
    return SurgeDecision(
        released=dict.fromkeys(
            _releasable(fleet, limits, leaving, surge)[: max(0, len(surge) - wanted)],
            Motive(Reason.SURGE_DONE, cause),
        ),
        added=dict.fromkeys(islice(free, lacking), Motive(Reason.SURGE, cause)),
    )


def _releasable(
    fleet: Fleet, limits: Limits, leaving: Collection[int], surge: list[GroupView]
) -> list[int]:
    """Ordinals that may go, in order: what doesn't run, then as many as aren't needed."""
    running = sum(
        group.running for ordinal, group in fleet.groups.items() if ordinal not in leaving
    )
    spare = max(0, running - (limits.wanted - limits.max_unavailable))
    order = replacement_order(map(group_candidate, surge))
    idle = [one.ordinal for one in order if not one.running]
    return idle + [one.ordinal for one in order if one.running][:spare]


def group_candidate(group: GroupView) -> Candidate:
    """A group as a candidate for deletion."""
    return Candidate(group.ordinal, group.running, group.deleting, group.cost)
