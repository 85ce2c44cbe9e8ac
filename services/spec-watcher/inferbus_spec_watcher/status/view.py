"""What a status is computed from."""

from collections.abc import Callable
from dataclasses import dataclass

from inferbus_contracts.errors import Problem
from inferbus_contracts.events.metrics import MetricsAssessed
from inferbus_contracts.events.route import ConditionFact, RoutesResolved
from inferbus_contracts.events.scaling import (
    ApplyOutcome,
    Limiter,
    LimiterStep,
    Mode,
    ScalingRefused,
)
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.orders import Freeze
from inferbus_contracts.scaling.settlement import Settled
from inferbus_shared.objects.picture import StoredObject
from inferbus_spec_watcher.policy_replicas import replicas


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
    decision_id: str = ""
    steps: tuple[LimiterStep, ...] = ()
    """What its limiters did, in order."""
    applies: bool = True
    """Whether it comes into force without anybody's approval."""

    @property
    def ratio(self) -> LimiterStep | None:
        """How it was brought into proportion with another role; None where nothing was asked."""
        return next((step for step in self.steps if step.name is Limiter.RATIO), None)


@dataclass(frozen=True, slots=True)
class Demand:
    """The last total of a mix."""

    mode: Mode
    steps: tuple[LimiterStep, ...]
    demanded_at_ms: int


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of the last decision about a target that was answered."""

    decision_id: str
    outcome: ApplyOutcome
    message: str


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
    answer: Callable[[ObjectKey], Answer | None]
    demand: Callable[[ObjectKey], Demand | None]
    """The total of a mix, by its policy."""
    measured: Callable[[ObjectKey], frozenset[str]]
    """The policy's names of the metrics that the last sample of a target has a value of."""
    sampled_ms: Callable[[ObjectKey], int]
    """When the last sample of a target was taken; 0 without one."""
    assessed: Callable[[ObjectKey], MetricsAssessed | None]
    """What is known of the samples of a policy or binding."""
    refused: Callable[[ObjectKey], ScalingRefused | None]
    """What the autoscaler said of a policy."""
    freeze: Callable[[ObjectKey], Freeze | None]
    """The widest freeze in force for a target now."""
    settled: Settled
    now_ms: int
    """Virtual time."""
    refusal: Callable[[ObjectKey], tuple[Problem, ...]] = lambda _: ()
    """Why a stored object is no fact."""

    def replicas(self, target: ObjectKey) -> int | None:
        """Replicas of the target's spec; None when it, or its role, isn't there."""
        stored = self.get(target.owner)
        if stored is None:
            return None
        try:
            return replicas(stored.object, target.role)
        except KeyError:
            return None

    def wanted_of(self, target: ObjectKey) -> Wanted | None:
        """The last decision about this very target, not about one of the same name before it."""
        stored, wanted = self.get(target.owner), self.wanted(target)
        return wanted if stored and wanted and wanted.uid == stored.uid else None

    def verdict_on(self, key: ObjectKey, stored: StoredObject) -> Verdict | None:
        """The verdict on this very object, not on one of the same name before it."""
        verdict = self.verdict(key)
        return verdict if verdict is not None and verdict.uid == stored.uid else None
