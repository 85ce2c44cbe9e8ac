"""What is told of actions that failed: on the object, where people look first (defect MS_D36).

Invariant: a condition or event here names an object and the server's own words; the same failure
gives the same words, so that trying again writes nothing.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from inferbus_contracts.conditions import condition
from inferbus_contracts.events.route import ConditionFact
from inferbus_contracts.events.workload import Outcome
from inferbus_workload_reconciler.actions import (
    Action,
    Create,
    Delete,
    EventReason,
    Update,
    WorkloadEvent,
)
from inferbus_workload_reconciler.policy_conditions import ACTION_FAILED
from inferbus_workload_reconciler.ports import Done

LONGEST_MESSAGE = 1024
"""As long as the note of a Kubernetes Event may be (events.k8s.io/v1)."""

_REASONS: Final[Mapping[type[Action], EventReason]] = {
    Create: EventReason.FAILED_CREATE,
    Update: EventReason.FAILED_UPDATE,
    Delete: EventReason.FAILED_DELETE,
}


def failure_condition(done: Iterable[Done]) -> tuple[ConditionFact, ...]:
    """The condition about actions that failed; none when all went well."""
    failed = _failed(done)
    if not failed:
        return ()
    first = failed[0]
    taken = first.result.outcome is Outcome.CONFLICT
    reason = "NameTaken" if taken and isinstance(first.action, Create) else _reason(first)
    more = f"; {len(failed) - 1} more failed" if len(failed) > 1 else ""
    message = _message(first)[: LONGEST_MESSAGE - len(more)] + more
    return (condition(ACTION_FAILED, True, reason, message),)


def failure_events(done: Iterable[Done]) -> tuple[WorkloadEvent, ...]:
    """An event for each action that failed."""
    return tuple(
        WorkloadEvent(_reason(one), _message(one)[:LONGEST_MESSAGE]) for one in _failed(done)
    )


def _failed(done: Iterable[Done]) -> list[Done]:
    return sorted(
        (one for one in done if not one.well), key=lambda one: (one.action.child, one.action.name)
    )


def _reason(done: Done) -> EventReason:
    return _REASONS[type(done.action)]


def _message(done: Done) -> str:
    return f"{done.action.child} {done.action.name}: {done.result.error}"
