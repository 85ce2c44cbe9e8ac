"""What a policy scales and where its metrics are read, and the binding of v0.1.0.

Invariant: `AutoscalingPolicyBindingSpec.homogeneous` and `.heterogeneous` are the same thing
whichever version's name it was written under (autoscaling spec 1.3 and 1.4).
"""

from fractions import Fraction
from typing import Annotated

from pydantic import Field

from inferbus_contracts.resources.document import ResourcePart
from inferbus_contracts.resources.metadata import LocalReference, ObjectReference, Resource
from inferbus_contracts.resources.metric_sources import (
    MetricEndpoint,
    MetricSource,
    PodSource,
    PolicyMetric,
)
from inferbus_contracts.resources.scalars import (
    Count,
    MaxReplicas,
    Quantity,
    Replicas,
    parse_quantity,
)


class SubTarget(ResourcePart):
    """A role of a ModelServing as the unit that is scaled (v0.2.0 to v0.4.0)."""

    kind: str | None = None
    """Role, or nothing."""
    name: str | None = None
    """Name of the role."""


class Target(ResourcePart):
    """One workload and where its metrics are."""

    target_ref: ObjectReference
    sub_targets: SubTarget | None = None
    additional_match_labels: dict[str, str] = Field(default_factory=dict)
    """Narrows the pods whose metrics are read."""
    metric_endpoint: MetricEndpoint | None = None
    metric_sources: dict[str, MetricSource] = Field(default_factory=dict)
    """By metric name (v1.0.0)."""

    @property
    def endpoint(self) -> MetricEndpoint:
        """The page to read; port 8100 and /metrics when none is given (ruling F3)."""
        return self.metric_endpoint or MetricEndpoint()

    def source_of(self, metric: str) -> MetricSource | None:
        """Where a metric is read; None when `metricSources` speaks of others only.

        Without `metricSources` every metric is on the one page of `endpoint`.
        """
        if self.metric_sources:
            return self.metric_sources.get(metric)
        page = self.endpoint
        return MetricSource(
            pod=PodSource(uri=page.uri, port=page.port, label_selector=page.label_selector)
        )


class HomogeneousTarget(ResourcePart):
    """One workload, scaled between two bounds."""

    target: Target
    min_replicas: Replicas
    """The least replicas."""
    max_replicas: MaxReplicas
    """The most replicas."""


class WeightedTarget(HomogeneousTarget):
    """One workload of a mix."""

    cost: Count = 0
    """Cost of one replica, in a unit that all targets of the mix share."""


class HeterogeneousTarget(ResourcePart):
    """Several workloads that serve the same load at different costs."""

    params: list[WeightedTarget] = Field(min_length=1)
    """The workloads, each at most once."""
    cost_expansion_rate_percent: Count = 200
    """What a stable mix may cost above the cheapest, percent of the cost of switching."""


class RoleScaling(ResourcePart):
    """One role of a disaggregated workload."""

    min_replicas: Replicas
    """The least replicas of the role."""
    max_replicas: MaxReplicas
    """The most replicas of the role."""
    metrics: Annotated[list[PolicyMetric], Field(min_length=1)] | None = None
    """Absent means the policy's own metrics."""
    metric_sources: dict[str, MetricSource] = Field(default_factory=dict)
    """Where each metric is read, by metric name."""

    @property
    def fixed(self) -> bool:
        """The bounds leave nothing to decide."""
        return self.min_replicas == self.max_replicas


class RatioConstraint(ResourcePart):
    """Bounds of (replicas of one role) / (replicas of the other)."""

    numerator_role: str
    """The role whose replicas are divided."""
    denominator_role: str
    """The role whose replicas they are divided by."""
    min_ratio: Quantity
    """The least quotient, 0 or more."""
    max_ratio: Quantity
    """The greatest quotient, above 0."""

    def allows(self, numerator: int, denominator: int) -> bool:
        """Whether so many replicas of the two roles are in proportion, in exact numbers.

        Both may be zero; where one is, nothing can be served. (autoscaling spec 1.4, D13)
        """
        if not (numerator and denominator):
            return numerator == denominator
        ratio = Fraction(numerator, denominator)
        return parse_quantity(self.min_ratio) <= ratio <= parse_quantity(self.max_ratio)


class DisaggregatedTarget(ResourcePart):
    """Roles of one ModelServing, each scaled by itself and kept in proportion."""

    target_ref: ObjectReference
    roles: dict[str, RoleScaling] = Field(min_length=1, max_length=2)
    """One or two roles of the workload, by name."""
    ratio_constraint: RatioConstraint | None = None


class AutoscalingPolicyBindingSpec(ResourcePart):
    """A policy by name and what it is applied to; v0.2.0 renamed the two configurations."""

    policy_ref: LocalReference
    scaling_configuration: HomogeneousTarget | None = None
    optimizer_configuration: HeterogeneousTarget | None = None
    homogeneous_target: HomogeneousTarget | None = None
    heterogeneous_target: HeterogeneousTarget | None = None

    @property
    def homogeneous(self) -> HomogeneousTarget | None:
        """The single target under either name."""
        return self.scaling_configuration or self.homogeneous_target

    @property
    def heterogeneous(self) -> HeterogeneousTarget | None:
        """The mix of targets under either name."""
        return self.optimizer_configuration or self.heterogeneous_target


class AutoscalingPolicyBinding(Resource):
    """Ties a policy to what it scales (v0.1.0 to v0.4.0)."""

    spec: AutoscalingPolicyBindingSpec
