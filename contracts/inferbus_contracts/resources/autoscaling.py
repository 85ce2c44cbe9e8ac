"""AutoscalingPolicy: which metrics carry the load, and how fast the answer may move.

Invariant: the union of all versions (autoscaling spec 1.2 and 1.4). v0.1.0 knows the fields of
`PolicyBody` alone; later versions name the target in the policy itself.
"""

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from inferbus_contracts.resources.document import ResourcePart
from inferbus_contracts.resources.metadata import Resource
from inferbus_contracts.resources.metric_sources import PolicyMetric
from inferbus_contracts.resources.scalars import Count, Duration, Integer, parse_duration_ms
from inferbus_contracts.resources.scaling_targets import (
    DisaggregatedTarget,
    HeterogeneousTarget,
    HomogeneousTarget,
)

RatePercent = Annotated[Integer, Field(ge=0, le=1000)]
"""0 to 1000 percent."""


class SelectPolicy(StrEnum):
    """Which of the two limits of a change counts: the wider (Or) or the narrower (And)."""

    OR = "Or"
    AND = "And"


class StablePolicy(ResourcePart):
    """How much replicas may change in one direction within one period."""

    instances: Count = 1
    """The most replicas that may come or go within a period."""
    percent: RatePercent = 100
    """The same as percent of the replicas there were."""
    period: Duration = "15s"
    """Window of the rate limit; zero means no limit."""
    select_policy: SelectPolicy = SelectPolicy.OR
    stabilization_window: Duration | None = None
    """How long the more cautious answer is remembered; absent means not at all."""

    @property
    def period_ms(self) -> int:
        """`period` in milliseconds."""
        return parse_duration_ms(self.period)

    @property
    def stabilization_window_ms(self) -> int:
        """`stabilizationWindow` in milliseconds, 0 when absent."""
        return parse_duration_ms(self.stabilization_window or "0")


class PanicPolicy(ResourcePart):
    """When load jumps: scale up faster, and never down, for a while."""

    percent: RatePercent = 1000
    """The most that replicas may grow within a period, percent of what they were."""
    period: Duration | None = None
    """Window of the panic rate limit; absent means no limit (ruling F2)."""
    panic_threshold_percent: Annotated[Integer, Field(ge=110, le=1000)] = 200
    """Panic begins when the wanted replicas reach this share of the current ones."""
    panic_mode_hold: Duration = "60s"
    """How long panic lasts after its last trigger; zero switches panic off."""

    @property
    def period_ms(self) -> int:
        """`period` in milliseconds, 0 when absent."""
        return parse_duration_ms(self.period or "0")

    @property
    def panic_mode_hold_ms(self) -> int:
        """`panicModeHold` in milliseconds."""
        return parse_duration_ms(self.panic_mode_hold)


class ScaleUp(ResourcePart):
    """Limits of scaling up in the two states."""

    stable_policy: StablePolicy | None = None
    panic_policy: PanicPolicy | None = None


class Behavior(ResourcePart):
    """Limits of scaling; admission fills absent parts (autoscaling spec 1.7)."""

    scale_down: StablePolicy | None = None
    scale_up: ScaleUp | None = None


class PolicyBody(ResourcePart):
    """The part of a policy that a ModelBooster may embed too."""

    tolerance_percent: Annotated[Integer, Field(ge=0, le=100)] = 10
    """Changes below this share of the current replicas are not made (ruling F1)."""
    metrics: list[PolicyMetric] = Field(default_factory=list)
    """What is measured, and how much of it one replica should carry."""
    behavior: Behavior | None = None


class AutoscalingPolicySpec(PolicyBody):
    """A policy, and from v1.0.0 on the one target it is for."""

    homogeneous_target: HomogeneousTarget | None = None
    heterogeneous_target: HeterogeneousTarget | None = None
    disaggregated_target: DisaggregatedTarget | None = None


class AutoscalingPolicy(Resource):
    """A policy; in v0.1.0 form it takes effect through an AutoscalingPolicyBinding."""

    spec: AutoscalingPolicySpec
