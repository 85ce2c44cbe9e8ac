"""What every deciding service's pure core shares: what it hears, and what it asks for.

Invariant: an event is plain finite JSON data of bounded size, so that a decision record can embed
it whole; and a key has at most one timer, where a new one replaces the old.
"""

from dataclasses import dataclass
from typing import Any

from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_contracts.events.scaling import ApplyOutcome, ScalingApplied
from inferbus_contracts.events.scaling import Woken as WokenData

MOST_RECORD_BYTES = 16 * 1024
"""Of a decision record as canonical JSON (DESIGN section 7)."""


@dataclass(frozen=True, kw_only=True)
class Origin:
    """Where an event stands in the log; copied into the record of what follows from it."""

    sequence: int = 0
    """Sequence in the decider's inbox."""
    causes: tuple[str, ...] = ()
    """Ids of the events that led here, the direct one first."""


@dataclass(frozen=True, kw_only=True)
class Applied(Origin):
    """The reconciler's answer to a decision about one target."""

    target: str
    decision_id: str
    outcome: ApplyOutcome
    replicas: int
    generation: int
    uid: str


@dataclass(frozen=True, kw_only=True)
class Woken(Origin):
    """A timer of the decider fired."""

    due_ms: int


@dataclass(frozen=True)
class SetTimer:
    """Wake the key at `at_ms`, virtual time."""

    at_ms: int
    reason: str


@dataclass(frozen=True)
class ClearTimer:
    """The timer of the key is not needed any more."""


def applied(target: str, data: ScalingApplied, origin: Origin) -> Applied:
    """The event of a `scaling.applied` body that was keyed by `target`."""
    return Applied(
        sequence=origin.sequence,
        causes=origin.causes,
        target=target,
        decision_id=data.decision_id,
        outcome=data.outcome,
        replicas=data.replicas,
        generation=data.generation,
        uid=data.uid,
    )


def woken(data: WokenData, origin: Origin) -> Woken:
    """The event of a fired timer."""
    return Woken(sequence=origin.sequence, causes=origin.causes, due_ms=data.due_ms)


def check_schema(data: dict[str, Any], current: int) -> None:
    """Raise `ProblemsError` unless a stored state has the current layout or the one before."""
    schema = data.get("schema")
    if schema not in (current, current - 1):
        raise ProblemsError(
            Problem(
                code=ErrorCode.RULE_BROKEN,
                message="the stored state has a layout that this version can't read",
                field="schema",
                value=schema,
                remedy=f"run a version that reads layouts {current - 1} and {current}",
            )
        )


def foreign_input(error: Exception) -> ProblemsError:
    """The error of a record whose input no core of this decider was called with."""
    return ProblemsError(
        Problem(
            code=ErrorCode.RULE_BROKEN,
            message="the record's input is none of this decider's",
            field="record.input",
            value=str(error),
            remedy="recompute the record with the decider and version that it names",
        )
    )


def no_decision(version: str) -> ProblemsError:
    """The error of a record whose input leads to no decision under the rules of today."""
    return ProblemsError(
        Problem(
            code=ErrorCode.RULE_BROKEN,
            message="the record's input gives no decision under these rules",
            field="record.version",
            value=version,
            remedy="recompute it with the version that it names",
        )
    )
