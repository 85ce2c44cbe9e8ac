"""Decisions about replicas, their records, and what became of them."""

from enum import StrEnum
from typing import Any, ClassVar

from pydantic import Field

from inferbus_contracts.base import EventData
from inferbus_contracts.errors import Problem


class Mode(StrEnum):
    """In which state a decision was made."""

    STABLE = "stable"
    PANIC = "panic"


class Limiter(StrEnum):
    """What may hold a decision back from what its metrics ask for, in the order applied."""

    NONE = "none"
    DATA = "data"
    """Samples are missing, partial or stale: nothing is scaled down on them."""
    TOLERANCE = "tolerance"
    BOUNDS = "bounds"
    STABILISATION = "stabilisation"
    RATE = "rate"
    PANIC = "panic"
    RATIO = "ratio"
    CAPACITY = "capacity"
    FREEZE = "freeze"


class LimiterStep(EventData):
    """One limiter as it was applied."""

    name: Limiter
    before: int
    after: int
    detail: str = ""
    """The numbers that decided, e.g. `max of 300 s is 7`."""


class MetricReading(EventData):
    """One metric, its target, and how many replicas it asks for."""

    name: str
    value: float | None = None
    """Total over the target; None when no pod gave it."""
    target: float
    """What one replica should carry, in the metric's unit."""
    want: int | None = None
    """None when the metric asks for nothing (missing)."""
    detail: str = ""


class DecisionRecord(EventData):
    """Why a number was chosen; enough to compute it again from nothing else.

    At most 16 KB as canonical JSON.
    """

    decider: str
    """Name of the decider, e.g. `autoscaler`."""
    version: str
    """Version of its rules; the same version gives the same bytes for the same input."""
    policy: str
    """Key of the policy."""
    policy_digest: str
    target: str | None = None
    """Key of the target, where the same input led to decisions about others too."""
    input: dict[str, Any]
    """The core's whole input: event, facts, state before; what `replay` computes again."""
    inbox_sequence: int = 0
    """Sequence of the event in the decider's inbox."""
    state_before: str = ""
    """Digest of the state before."""
    state_after: str = ""
    metrics: list[MetricReading] = Field(default_factory=list)
    limiters: list[LimiterStep] = Field(default_factory=list)
    binding: Limiter = Limiter.NONE
    """The last limiter that changed the number; `none` when the metrics got what they asked for."""
    causes: list[str] = Field(default_factory=list)
    """Ids of the events that led here, the direct one first."""


class ScalingDecided(EventData):
    """The replicas that one target, or one role of it, should have."""

    event_type: ClassVar[str] = "scaling.decided"

    current: int
    desired: int
    mode: Mode = Mode.STABLE
    apply: str = "auto"
    """`auto`, `advise` (never applied) or `approve` (applied once approved)."""
    target_uid: str
    target_generation: int
    """The generation this was computed from: the scale request is conditional on it."""
    companions: list[str] | None = None
    """Keys of the other roles of the same object that the same input led to decisions about: what
    these change of the object leaves this decision valid."""
    record: DecisionRecord


class CapacitySource(StrEnum):
    """Where it is known from what one replica of each target of a mix serves."""

    ANNOTATION = "annotation"
    PROFILE = "profile"
    """The accelerators that the pods ask for."""
    LEARNED = "learned"
    """The rates that were held while requests waited."""


class TargetOption(EventData):
    """One target of a mix as the optimizer needs it."""

    target: str
    """Key of the target."""
    uid: str
    generation: int
    current: int
    min_replicas: int
    max_replicas: int
    cost: int
    """Cost of one replica, in the policy's own unit."""
    capacity: float = 1.0
    """What one replica serves, in capacity units."""
    schedulable: int | None = None
    """The most replicas that can be scheduled now; None when not known to be limited."""
    probe: bool | None = None
    """Whether one more than `schedulable` may be tried, which isn't counted on; None: no."""
    startup_ms: int = 0


class ScalingDemanded(EventData):
    """The total load of a mix of targets."""

    event_type: ClassVar[str] = "scaling.demanded"

    capacity: float
    """Demand in capacity units: what the chosen replicas together must serve."""
    replicas: int
    """The same in replicas of capacity 1, after all limiters."""
    current: int
    mode: Mode = Mode.STABLE
    apply: str = "auto"
    cost_expansion_rate_percent: int = 200
    capacity_source: CapacitySource | None = None
    """None: all replicas are taken to be equal."""
    targets: list[TargetOption]
    record: DecisionRecord


class Allocation(EventData):
    """The share of one target."""

    target: str
    uid: str
    generation: int
    current: int
    desired: int


class ScalingAllocated(EventData):
    """Replicas per target of a mix."""

    event_type: ClassVar[str] = "scaling.allocated"

    apply: str = "auto"
    allocations: list[Allocation]
    cost: int
    """Cost of the allocation per unit of time."""
    optimal_cost: int
    """Least possible cost for the same demand; differs while switching isn't worth it yet."""
    record: DecisionRecord


class ScalingRefused(EventData):
    """A policy that the autoscaler can't decide by, or can again; its targets keep their replicas.

    Keyed by the policy or binding that names the targets.
    """

    event_type: ClassVar[str] = "scaling.refused"

    uid: str
    """Of the policy or binding."""
    problems: list[Problem] = Field(default_factory=list)
    """Everything that has to be corrected; empty: the refusal is over."""


class ApplyOutcome(StrEnum):
    """What became of a decision."""

    APPLIED = "applied"
    UNCHANGED = "unchanged"
    """The target already had that number."""
    CONFLICT = "conflict"
    """The target changed since the decision was computed; it will be decided again."""
    FROZEN = "frozen"
    AWAITING_APPROVAL = "awaiting approval"
    ADVISED = "advised"
    FAILED = "failed"


class ScalingApplied(EventData):
    """The reconciler's answer to one decision, per target."""

    event_type: ClassVar[str] = "scaling.applied"

    decision_id: str
    outcome: ApplyOutcome
    replicas: int
    """Replicas of the target's spec afterwards."""
    generation: int
    """Generation of the target afterwards."""
    uid: str
    message: str = ""


class Woken(EventData):
    """A timer that a decider set for itself has fired."""

    event_type: ClassVar[str] = "woken"

    due_ms: int
    """When it was due, virtual time."""
    reason: str = ""
