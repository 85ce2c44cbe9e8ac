"""From policies and bindings to what is to be sampled (autoscaling spec 1.2 to 1.4).

Both generations of the API end here: a binding that applies a policy (v0.1.0 to v0.4.0), and a
policy that names its target itself (v1.0.0). Invariant: each target belongs to at most one plan,
that of the oldest policy; what can't be planned is told as a problem of its policy.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from inferbus_contracts.envelope import parse_time
from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.resources.autoscaling import AutoscalingPolicy
from inferbus_contracts.resources.kinds import find_kind
from inferbus_contracts.resources.metadata import ObjectReference
from inferbus_contracts.resources.metric_sources import PolicyMetric
from inferbus_contracts.resources.scaling_targets import (
    AutoscalingPolicyBinding,
    DisaggregatedTarget,
    HeterogeneousTarget,
    HomogeneousTarget,
    Target,
)
from inferbus_metrics_collector.plans import SamplePlan, TargetPlan
from inferbus_metrics_collector.policy_sources import Aggregations, MetricReader, aggregations

_TARGET_KIND = "ModelServing"


@dataclass(frozen=True, kw_only=True, slots=True)
class Stored:
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
class Planned:
    """What is to be sampled, and what is wrong with the rest."""

    plans: dict[ObjectKey, SamplePlan] = field(default_factory=dict)
    """By the key of the sample."""
    problems: dict[ObjectKey, tuple[Problem, ...]] = field(default_factory=dict)
    """By policy or binding."""


@dataclass(frozen=True, kw_only=True, slots=True)
class NamespaceGrants:
    """Which namespaces' policies may name targets of which others (autoscaling spec D25)."""

    pairs: frozenset[tuple[str, str]] = frozenset()
    """(namespace of the policy, namespace of the target); `*` means any."""

    def allow(self, policy: str, target: str) -> bool:
        """Whether a policy of one namespace may name a target of the other."""
        choices = {(a, b) for a in (policy, "*") for b in (target, "*")}
        return policy == target or bool(choices & self.pairs)


def plan_samples(objects: Mapping[ObjectKey, Stored], grants: NamespaceGrants) -> Planned:
    """The plans of all policies and bindings; the result doesn't depend on their order."""
    wishes: list[SamplePlan] = []
    problems: dict[ObjectKey, tuple[Problem, ...]] = {}
    for stored in objects.values():
        try:
            wishes += list(_wishes(stored, objects, grants))
        except ProblemsError as error:
            problems[stored.key] = error.problems
    plans: dict[ObjectKey, SamplePlan] = {}
    owners: dict[ObjectKey, ObjectKey] = {}
    for wish in sorted(wishes, key=_seniority):
        taken = [target.key for target in wish.targets if target.key in owners]
        if taken:
            lost = _lost(wish.policy, taken[0], owners[taken[0]])
            problems[wish.policy] = (*problems.get(wish.policy, ()), lost)
            continue
        plans[wish.key] = wish
        owners |= {target.key: wish.policy for target in wish.targets}
    return Planned(plans=plans, problems=problems)


def _seniority(plan: SamplePlan) -> tuple[bool, int, str, str, str, ObjectKey]:
    """The older policy first, then by namespace and name (DESIGN section 6)."""
    unknown, policy = plan.created_at_ms is None, plan.policy
    age = plan.created_at_ms or 0
    return (unknown, age, policy.namespace, policy.name, policy.kind, plan.key)


def _wishes(
    stored: Stored, objects: Mapping[ObjectKey, Stored], grants: NamespaceGrants
) -> Iterator[SamplePlan]:
    """The plans of one object, if nothing else wanted its targets."""
    if isinstance(stored.resource, AutoscalingPolicyBinding):
        policy = _bound_policy(stored, stored.resource, objects)
        planner = _Planner(stored, policy, f"{stored.identity}/{policy.identity}", None)
        spec = stored.resource.spec
        yield from planner.plans(spec.homogeneous, spec.heterogeneous, None)
        return
    planner = _Planner(stored, stored, stored.identity, grants)
    own = stored.resource.spec
    yield from planner.plans(
        own.homogeneous_target, own.heterogeneous_target, own.disaggregated_target
    )


def _bound_policy(
    stored: Stored, binding: AutoscalingPolicyBinding, objects: Mapping[ObjectKey, Stored]
) -> Stored:
    name = binding.spec.policy_ref.name or ""
    policy = objects.get(ObjectKey("AutoscalingPolicy", stored.key.namespace, name))
    if policy is None:
        raise ProblemsError(
            Problem(
                code=ErrorCode.MISSING_REFERENCE,
                message="the binding's policy does not exist",
                object=str(stored.key),
                field="spec.policyRef.name",
                value=name,
                remedy="create the policy in the same namespace, or correct the name",
            )
        )
    return policy


class _Planner:
    """Plans the samples of one policy or binding."""

    def __init__(
        self, owner: Stored, policy: Stored, identity: str, grants: NamespaceGrants | None
    ) -> None:
        """`grants` None: references stay inside the owner's namespace, whatever they say."""
        assert isinstance(policy.resource, AutoscalingPolicy)
        self._owner = owner
        self._identity = identity
        self._grants = grants
        self._metrics: Sequence[PolicyMetric] = policy.resource.spec.metrics
        self._aggregations: Aggregations = aggregations(owner.key, owner.resource, policy.resource)

    def plans(
        self,
        single: HomogeneousTarget | None,
        mix: HeterogeneousTarget | None,
        roles: DisaggregatedTarget | None,
    ) -> Iterator[SamplePlan]:
        """Of the three the first that is given, in the order of autoscaling spec 2.1."""
        if mix is not None:
            yield self._mix(mix)
        elif single is not None:
            target = self._target(single.target, "target")
            yield self._plan(target.key, (target,))
        elif roles is not None:
            for name in sorted(roles.roles):
                target = self._role(roles, name)
                yield self._plan(target.key, (target,))

    def _plan(self, key: ObjectKey, targets: tuple[TargetPlan, ...]) -> SamplePlan:
        return SamplePlan(
            key=key,
            policy=self._owner.key,
            identity=self._identity,
            created_at_ms=_created_at_ms(self._owner),
            targets=targets,
        )

    def _mix(self, mix: HeterogeneousTarget) -> SamplePlan:
        """All targets in one sample, even where there is only one: the optimizer reads it."""
        targets: dict[ObjectKey, TargetPlan] = {}
        for index, param in enumerate(mix.params):
            target = self._target(param.target, f"params[{index}].target")
            targets.setdefault(target.key, target)
        return self._plan(self._owner.key, tuple(targets.values()))

    def _target(self, target: Target, place: str) -> TargetPlan:
        role = (target.sub_targets.name or "") if target.sub_targets else ""
        key = self._key(target.target_ref, place)._replace(role=role)
        reader = self._reader(place, role)
        return TargetPlan(
            key=key, metrics=tuple(reader.of_target(metric, target) for metric in self._metrics)
        )

    def _role(self, roles: DisaggregatedTarget, name: str) -> TargetPlan:
        """A role with fixed replicas is sampled too: its state is worth knowing to its peer."""
        scaling = roles.roles[name]
        key = self._key(roles.target_ref, "disaggregatedTarget")._replace(role=name)
        metrics = () if scaling.fixed else scaling.metrics or self._metrics
        reader = self._reader(f"disaggregatedTarget.roles.{name}", name)
        return TargetPlan(
            key=key, metrics=tuple(reader.of_role(metric, scaling) for metric in metrics)
        )

    def _reader(self, place: str, role: str) -> MetricReader:
        return MetricReader(
            owner=self._owner.key, place=place, role=role, aggregations=self._aggregations
        )

    def _key(self, reference: ObjectReference, place: str) -> ObjectKey:
        home = self._owner.key.namespace
        namespace = home if self._grants is None else reference.namespace or home
        if not reference.name:
            raise ProblemsError(self._problem(f"{place}.targetRef.name", "names no target", ""))
        if self._grants is not None and not self._grants.allow(home, namespace):
            raise ProblemsError(
                Problem(
                    code=ErrorCode.PERMISSION_DENIED,
                    message="the target is in another namespace",
                    object=str(self._owner.key),
                    field=f"{place}.targetRef.namespace",
                    value=namespace,
                    remedy="move the policy, or grant it: "
                    f"INFERBUS_METRICS_COLLECTOR_NAMESPACE_GRANTS={home}/{namespace}",
                )
            )
        kind = reference.kind or _TARGET_KIND
        known = find_kind(reference.api_version or "", kind)
        return ObjectKey(known.token if known else kind, namespace, reference.name)

    def _problem(self, field_: str, message: str, value: str) -> Problem:
        return Problem(
            code=ErrorCode.MISSING_REFERENCE,
            message=message,
            object=str(self._owner.key),
            field=field_,
            value=value,
            remedy="name the workload that the policy is for",
        )


def _created_at_ms(stored: Stored) -> int | None:
    text = stored.resource.metadata.creation_timestamp
    try:
        return parse_time(text) if text else None
    except ValueError:
        return None


def _lost(policy: ObjectKey, target: ObjectKey, owner: ObjectKey) -> Problem:
    return Problem(
        code=ErrorCode.CONFLICT,
        message=f"{target} is already scaled by {owner}, which is older",
        object=str(policy),
        field="targetRef",
        value=str(target),
        remedy="delete one of the two, or give this one another target",
    )
