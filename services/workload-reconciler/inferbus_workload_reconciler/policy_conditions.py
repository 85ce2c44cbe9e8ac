"""Conditions: what a workload says of itself to people and to other controllers.

Types and reasons are those that users know (modelserving spec 3.13; LeaderWorkerSet has the same);
what is added to them speaks of the workload's doubts.

Invariant: of a workload's three phases exactly one is True.
"""

from collections.abc import Sequence

from inferbus_contracts.conditions import condition
from inferbus_contracts.events.route import ConditionFact

AVAILABLE = "Available"
PROGRESSING = "Progressing"
UPDATE_IN_PROGRESS = "UpdateInProgress"
SCHEDULER_FALLBACK = "SchedulerFallback"
RECOVERY_BACK_OFF = "RecoveryBackOff"
SNAPSHOT_LOST = "RevisionSnapshotLost"
NAME_TAKEN = "NameTaken"
GANG_LIMITED = "GangPolicyLimited"
SCHEDULING_DRIFT = "SchedulingDrift"
STALLED = "Stalled"
PAUSED = "Paused"
STARTUP_ORDER_IGNORED = "StartupOrderIgnored"
ACTION_FAILED = "ActionFailed"

OCCASIONAL = (
    SCHEDULER_FALLBACK,
    RECOVERY_BACK_OFF,
    SNAPSHOT_LOST,
    NAME_TAKEN,
    GANG_LIMITED,
    SCHEDULING_DRIFT,
    STALLED,
    PAUSED,
    STARTUP_ORDER_IGNORED,
    ACTION_FAILED,
)
"""Conditions that appear when they are first True and turn False afterwards."""


def phase_conditions(
    *, settled: bool, rolling: bool, unsettled: Sequence[int], available: int, wanted: int
) -> list[ConditionFact]:
    """The three phases of a workload."""
    if settled:
        active, reason = AVAILABLE, "AllGroupsReady"
        message = f"all {available} groups are ready"
    else:
        active, reason = PROGRESSING, "GroupProgressing"
        message = f"{available} of {wanted} groups are ready; not ready: {_some(unsettled)}"
    if rolling and not settled:
        active, reason = UPDATE_IN_PROGRESS, "GroupsUpdating"
    return [
        condition(type_, type_ == active, reason, message)
        for type_ in (AVAILABLE, PROGRESSING, UPDATE_IN_PROGRESS)
    ]


def _some(ordinals: Sequence[int]) -> str:
    shown = ", ".join(str(ordinal) for ordinal in ordinals[:10])
    return f"{shown} and {len(ordinals) - 10} more" if len(ordinals) > 10 else shown or "none"
