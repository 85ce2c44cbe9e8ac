"""What scales what, in one form for all versions of policies and bindings.

Invariant: an intent holds everything that its scaling is read from, so that whoever has it needs no
other object. (autoscaling spec 1.2 to 1.4)
"""

from collections.abc import Sequence
from dataclasses import dataclass

from inferbus_contracts.envelope import parse_time
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.resources.annotations import OBJECTIVE
from inferbus_contracts.resources.autoscaling import AutoscalingPolicy, PolicyBody
from inferbus_contracts.resources.metric_sources import PolicyMetric
from inferbus_contracts.resources.scaling_targets import (
    AutoscalingPolicyBinding,
    RatioConstraint,
    RoleScaling,
    Target,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class PolicyObject:
    """A policy or binding as it stands."""

    key: ObjectKey
    uid: str
    generation: int
    resource: AutoscalingPolicy | AutoscalingPolicyBinding

    @property
    def identity(self) -> str:
        """Changes whenever the spec does."""
        return f"{self.uid}:{self.generation}"


@dataclass(frozen=True, kw_only=True, slots=True)
class IntentTarget:
    """One target and its bounds; what is read from it stands in `target` or `role`."""

    key: ObjectKey
    field: str
    """Where it stands in the object, e.g. `spec.params[0].target`."""
    min_replicas: int
    max_replicas: int
    cost: int = 0
    target: Target | None = None
    role: RoleScaling | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ScalingIntent:
    """One policy as it applies to its target, to a mix of targets, or to roles of one workload."""

    owner: PolicyObject
    """The binding, or the policy that names its own target: whose key the decisions carry."""
    policy: PolicyObject
    """The policy that holds metrics and behaviour; the owner itself from v1.0.0 on."""
    body: PolicyBody
    targets: tuple[IntentTarget, ...]
    mix: bool = False
    """The targets share one load, and the optimizer splits it."""
    cost_expansion_rate_percent: int = 200
    ratio: RatioConstraint | None = None
    """Of the roles; None where any proportion will do."""

    @property
    def joint(self) -> bool:
        """Whether the targets are roles that carry a load each, and are decided about together."""
        return len(self.targets) > 1 and not self.mix

    @property
    def key(self) -> ObjectKey:
        """What samples and the decider's state are keyed by: one target, or the owner of more."""
        return self.owner.key if self.mix or self.joint else self.targets[0].key

    @property
    def identity(self) -> str:
        """Changes whenever the owner or its policy does."""
        if self.owner.key == self.policy.key:
            return self.owner.identity
        return f"{self.owner.identity}/{self.policy.identity}"

    def metrics_of(self, target: IntentTarget) -> Sequence[PolicyMetric]:
        """What a target of the intent is scaled by: a role's own metrics, else the policy's.

        A role with fixed replicas has nothing to decide (autoscaling spec 5.1).
        """
        if target.role is None:
            return self.body.metrics
        return () if target.role.fixed else target.role.metrics or self.body.metrics

    def by_objective(self, target: IntentTarget) -> bool:
        """Whether the objective alone says how to scale; of fixed replicas it says nothing."""
        is_fixed = target.role is not None and target.role.fixed
        return OBJECTIVE in self.annotations and not is_fixed and not self.metrics_of(target)

    @property
    def annotations(self) -> dict[str, str]:
        """Annotations that steer the scaling: the policy's, and over them the owner's."""
        return {**self.policy.resource.annotations, **self.owner.resource.annotations}

    @property
    def created_at_ms(self) -> int | None:
        """When the owner was created; None where unknown."""
        created = self.owner.resource.metadata.creation_timestamp
        return parse_time(created) if created else None
