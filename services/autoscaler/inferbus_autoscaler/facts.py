"""What a decision rests on beside the event: the policy, its targets, and the decider's settings.

Plain frozen data, JSON-able through `documents`. The shell folds it from spec.changed,
workload.observed and control.*; what a decision used of it is embedded in its record. A field's
default never changes its meaning: fields at their default are left out of the JSON.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from inferbus_autoscaler.stamps import MOST_STAMPS
from inferbus_contracts.events.scaling import CapacitySource
from inferbus_contracts.resources.annotations import (
    ApplyMode,
    CapacityUnit,
    Compat,
    ObjectiveMetric,
)


@dataclass(frozen=True, kw_only=True)
class StepPolicy:
    """How far one direction may go (autoscaling spec 1.2, StablePolicy)."""

    instances: int = 1
    """Replicas per period, 0 or more."""
    percent: int = 100
    """Percent of the replicas per period, 0 to 1000."""
    period_ms: int = 15_000
    """0: no limit of the rate."""
    select: str = "Or"
    """`Or`: the more permissive of the two limits; `And`: the stricter; anything else: none."""
    stabilisation_ms: int = 0
    """Look-back of the most careful recommendation; 0: none."""


@dataclass(frozen=True, kw_only=True)
class PanicPolicy:
    """When limits are lifted (autoscaling spec 1.2, PanicPolicy)."""

    threshold_percent: int | None = 200
    """Of the current replicas; None: panic never starts."""
    hold_ms: int = 60_000
    """How long panic goes on after the last hit; 0: panic is off."""
    percent: int = 1000
    """Percent of the replicas that may be added per period."""
    period_ms: int = 0
    """0 (an absent period, ruling F2): no limit of the rate in panic."""


@dataclass(frozen=True, kw_only=True)
class Behaviour:
    """The limits of a policy; an absent part limits nothing."""

    scale_down: StepPolicy | None = None
    scale_up: StepPolicy | None = None
    panic: PanicPolicy | None = None


@dataclass(frozen=True, kw_only=True)
class MetricTarget:
    """What one replica should carry of one metric."""

    name: str
    """The policy's name of the metric."""
    target: float
    """Above 0, in the metric's unit."""


@dataclass(frozen=True, kw_only=True)
class PolicyTarget:
    """One target as its policy names it."""

    key: str
    """`kind/namespace/name[/role]`."""
    min_replicas: int
    max_replicas: int
    cost: int = 0
    """Cost of one replica in the policy's own unit; mixes only."""
    capacity: float = 1.0
    """Capacity units of one replica, above 0; mixes only. 1 carries one metric target's worth."""
    metrics: tuple[MetricTarget, ...] | None = None
    """Of a role that brings its own; None: the policy's."""

    @property
    def fixed(self) -> bool:
        """The bounds leave nothing to decide."""
        return self.min_replicas == self.max_replicas


@dataclass(frozen=True, kw_only=True)
class RatioFacts:
    """In what proportion two roles are to be (autoscaling spec 1.4, ratioConstraint)."""

    numerator: str
    """Key of the role."""
    denominator: str
    least: str
    """Quantity, as written: the bounds are exact."""
    most: str


@dataclass(frozen=True, kw_only=True)
class ObjectiveFacts:
    """What requests may have to wait, and what is known of a replica."""

    late_share: float
    """Of requests that may be late, above 0 and below 1."""
    limit_ms: int
    """Above 0."""
    metric: ObjectiveMetric
    capacity: float | None = None
    """What one replica (of a mix: one capacity unit) serves per second; None: nobody said."""
    unit: CapacityUnit = CapacityUnit.REQUESTS
    daily: bool = False
    """Forecasts may rest on the time of day."""


@dataclass(frozen=True, kw_only=True)
class PolicyFacts:
    """One policy, parsed, with defaults filled in."""

    key: str
    uid: str
    generation: int
    digest: str
    metrics: tuple[MetricTarget, ...]
    objective: ObjectiveFacts | None = None
    """In place of metrics."""
    tolerance_percent: int = 10
    behaviour: Behaviour = field(default_factory=Behaviour)
    targets: tuple[PolicyTarget, ...] = ()
    mix: bool = False
    """True: the optimizer splits the total over the targets."""
    joint: bool = False
    """True: the targets are roles of one object, each with a load of its own, decided together.
    Where neither is true there is exactly one target."""
    ratio: RatioFacts | None = None
    """Of the roles; None: any proportion will do."""
    capacity_source: CapacitySource | None = None
    """Where the capacities of a mix come from; None: nobody knows, all are taken to be equal."""
    cost_expansion_rate_percent: int = 200
    compat: Compat | None = None
    apply: ApplyMode = ApplyMode.AUTO
    most_stamps: int = MOST_STAMPS
    """Longest history of one value; `policy_check.fitted` lowers it where records get large."""


@dataclass(frozen=True, kw_only=True)
class TargetFacts:
    """One target as it stands."""

    key: str
    uid: str
    generation: int
    """Of the stored object; a role has that of its ModelServing."""
    replicas: int
    """`spec.replicas`, or that of the role, which is then per group."""
    groups: int = 1
    """Of a role: groups that have `replicas` each. What pods say is of all groups together."""
    ready: int = 0
    """Replicas that serve."""
    starting: int = 0
    """Replicas that have never been ready: capacity to come, without load."""
    unready: int = 0
    """Replicas that were ready and aren't: they may carry load that nobody sees."""
    placed: int = 0
    """Replicas that have a node, running or starting there."""
    schedulable: int | None = None
    """`placed`, where others that are wanted wait in vain for a node; None where none does."""
    startup_ms: int = 0
    deleted: bool = False

    @property
    def identity(self) -> str:
        """What is learned of the target is kept under it: its uid, and which role of that it is."""
        role = self.key.split("/")[3:]
        return "/".join((self.uid, *role))


@dataclass(frozen=True, kw_only=True)
class DeciderSettings:
    """Knobs of the decider itself, virtual time."""

    repeat_ms: int = 600_000
    """A decision is made again at least that often while samples arrive."""
    stale_ms: int = 60_000
    """An older sample is no ground for scaling down."""
    idle_ms: int = 300_000
    """By an objective alone: without any request for so long, no replica is needed."""
    unplaced_ms: int = 120_000
    """A replica that waits for a node for longer waits in vain."""
    probe_ms: int = 300_000
    """The first pause after which a target that was short of accelerators is tried again."""
    longest_probe_ms: int = 3_600_000
    """The longest such pause."""


@dataclass(frozen=True, kw_only=True)
class Facts:
    """Everything a decision of one state key may look at."""

    policy: PolicyFacts | None
    """None: no policy owns the target (any more)."""
    targets: tuple[TargetFacts, ...] = ()
    frozen: bool = False
    """A freeze is in force for the target or a scope around it."""
    frozen_until_ms: int | None = None
    """When the first of the freezes in force ends by itself; None: none does."""
    decision_id: str = ""
    """Id of the key's last decision, as stored beside its state."""
    decision_ids: Mapping[str, str] = field(default_factory=dict)
    """By key of the role: the id of the last decision about it."""
    settings: DeciderSettings = field(default_factory=DeciderSettings)

    def target(self, key: str) -> TargetFacts | None:
        """The facts of one target; None where nothing is known of it."""
        for target in self.targets:
            if target.key == key:
                return target
        return None
