"""What a status is computed from."""

from collections.abc import Callable
from dataclasses import dataclass

from inferbus_contracts.events.route import ConditionFact, RoutesResolved
from inferbus_contracts.events.scaling import LimiterStep, Mode
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.scaling.settlement import Settled
from inferbus_shared.objects.picture import StoredObject


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the expansion of one generation of one object says."""

    uid: str
    generation: int
    conditions: tuple[ConditionFact, ...]


@dataclass(frozen=True, slots=True)
class Wanted:
    """The last decision about a target."""

    uid: str
    """The target's; a namesake that came later was never decided about."""
    replicas: int
    mode: Mode | None
    """None where the decision was about a mix, whose mode stands in the demand."""
    decided_at_ms: int
    ratio: LimiterStep | None = None
    """How it was brought into proportion with another role; None where nothing was asked."""
    applies: bool = True
    """Whether it comes into force without anybody's approval."""


@dataclass(frozen=True, slots=True)
class Scaled:
    """The last time that a decision changed a target's replicas."""

    uid: str
    """The target's."""
    at_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """Everything known about the objects, looked up as needed."""

    get: Callable[[ObjectKey], StoredObject | None]
    children: Callable[[str], tuple[ObjectKey, ...]]
    """Keys of what the owner with a uid controls."""
    verdict: Callable[[ObjectKey], Verdict | None]
    """None until a short object was expanded."""
    resolved: Callable[[ObjectKey], RoutesResolved | None]
    wanted: Callable[[ObjectKey], Wanted | None]
    scaled: Callable[[ObjectKey], Scaled | None]
    settled: Settled

    def verdict_on(self, key: ObjectKey, stored: StoredObject) -> Verdict | None:
        """The verdict on this very object, not on one of the same name before it."""
        verdict = self.verdict(key)
        return verdict if verdict is not None and verdict.uid == stored.uid else None
