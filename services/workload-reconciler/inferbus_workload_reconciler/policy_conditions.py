"""Conditions: what a workload says of itself to people and to other controllers.

Types and reasons are those that users know (modelserving spec 3.13; LeaderWorkerSet has the same);
what is added to them speaks of the workload's doubts.

Invariant: of a workload's three phases exactly one is True; a condition's transition time
changes if and only if its status does, its message whenever there is something else to say (defect
MS_D22).
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from inferbus_contracts.events.route import ConditionStatus

AVAILABLE = "Available"
PROGRESSING = "Progressing"
UPDATE_IN_PROGRESS = "UpdateInProgress"
SCHEDULER_FALLBACK = "SchedulerFallback"
RECOVERY_BACK_OFF = "RecoveryBackOff"
SNAPSHOT_LOST = "RevisionSnapshotLost"
NAME_TAKEN = "NameTaken"

OCCASIONAL = (SCHEDULER_FALLBACK, RECOVERY_BACK_OFF, SNAPSHOT_LOST, NAME_TAKEN)
"""Conditions that appear when they are first True and turn False afterwards."""


class Condition(NamedTuple):
    """One condition without its times."""

    type: str
    status: ConditionStatus
    reason: str
    message: str = ""


def truth(value: bool) -> ConditionStatus:
    """A condition's status."""
    return ConditionStatus.TRUE if value else ConditionStatus.FALSE


def phase_conditions(
    *, settled: bool, rolling: bool, unsettled: Sequence[int], available: int, wanted: int
) -> list[Condition]:
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
        Condition(type_, truth(type_ == active), reason, message)
        for type_ in (AVAILABLE, PROGRESSING, UPDATE_IN_PROGRESS)
    ]


def stamp(
    previous: Iterable[Mapping[str, Any]],
    conditions: Iterable[Condition],
    generation: int,
    now_ms: int,
) -> list[dict[str, Any]]:
    """The conditions as they are stored, those of other writers kept as they were."""
    stored = {one["type"]: dict(one) for one in previous}
    asserted = {one.type: one for one in conditions}
    for type_ in OCCASIONAL:
        if type_ in stored and type_ not in asserted:
            asserted[type_] = Condition(type_, ConditionStatus.FALSE, "Resolved")
    for type_, condition in asserted.items():
        before = stored.get(type_, {})
        same = before.get("status") == condition.status
        stored[type_] = {
            "type": type_,
            "status": condition.status.value,
            "reason": condition.reason,
            "message": condition.message,
            "observedGeneration": generation,
            "lastTransitionTime": before["lastTransitionTime"] if same else _rfc3339(now_ms),
        }
    return [stored[type_] for type_ in sorted(stored)]


def _some(ordinals: Sequence[int]) -> str:
    shown = ", ".join(str(ordinal) for ordinal in ordinals[:10])
    return f"{shown} and {len(ordinals) - 10} more" if len(ordinals) > 10 else shown or "none"


def _rfc3339(time_ms: int) -> str:
    """Whole seconds, as Kubernetes stores them."""
    return datetime.fromtimestamp(time_ms // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
