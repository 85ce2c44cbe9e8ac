"""Conditions: what an object says of itself to people and to other controllers.

Invariant: a condition's transition time changes if and only if its status does, its message
whenever there is something else to say (defect MS_D22).
"""

from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from inferbus_contracts.events.route import ConditionFact, ConditionStatus


def condition(type_: str, holds: bool, reason: str, message: str = "") -> ConditionFact:
    """One condition; `reason` is a word for programs, `message` is for people."""
    status = ConditionStatus.TRUE if holds else ConditionStatus.FALSE
    return ConditionFact(type=type_, status=status, reason=reason, message=message)


def stamp(
    previous: Iterable[Mapping[str, Any]],
    conditions: Iterable[ConditionFact],
    generation: int,
    now_ms: int,
    *,
    occasional: Collection[str] = (),
) -> list[dict[str, Any]]:
    """The conditions as they are stored, by type; those of other writers stay as they were.

    `occasional` types appear when they are first asserted, and turn False when they no longer are.
    """
    stored = {one["type"]: dict(one) for one in previous}
    asserted = {one.type: one for one in conditions}
    for type_ in occasional:
        if type_ in stored and type_ not in asserted:
            asserted[type_] = condition(type_, False, "Resolved")
    for type_, one in asserted.items():
        before = stored.get(type_, {})
        same = before.get("status") == one.status
        stored[type_] = {
            "type": type_,
            "status": one.status.value,
            "reason": one.reason,
            "message": one.message,
            "observedGeneration": generation,
            "lastTransitionTime": before["lastTransitionTime"] if same else whole_seconds(now_ms),
        }
    return [stored[type_] for type_ in sorted(stored)]


def whole_seconds(time_ms: int) -> str:
    """RFC 3339 in whole seconds, UTC: how Kubernetes stores the times of a status."""
    return datetime.fromtimestamp(time_ms // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
