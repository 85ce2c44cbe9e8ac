"""From what scales what to what is sampled.

Invariant: a plan and a decision are about the same thing, because both follow from the same
`ScalingIntent`; a policy that can't be planned is told as a problem.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_contracts.events.metrics import OUTPUT_TOKENS, WAITING_REQUESTS
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.resources.annotations import Aggregations
from inferbus_contracts.resources.metric_sources import PolicyMetric
from inferbus_contracts.scaling.intents import IntentTarget, ScalingIntent
from inferbus_contracts.scaling.settlement import Settled
from inferbus_metrics_collector.plans import PodMetric, PrometheusMetric, SamplePlan, TargetPlan
from inferbus_metrics_collector.policy_objective import OBJECTIVE_FAMILIES
from inferbus_metrics_collector.policy_sources import MetricReader, aggregations
from inferbus_shared.pages.names import families_of


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


def plan_samples(settled: Settled, grants: NamespaceGrants) -> Planned:
    """The plans of all intents that hold."""
    plans: dict[ObjectKey, SamplePlan] = {}
    problems = dict(settled.problems)
    for intent in settled.intents:
        try:
            plan = _plan(intent, grants)
        except ProblemsError as error:
            owner = intent.owner.key
            problems[owner] = (*problems.get(owner, ()), *error.problems)
        else:
            plans[plan.key] = plan
    return Planned(plans=plans, problems=problems)


def _plan(intent: ScalingIntent, grants: NamespaceGrants) -> SamplePlan:
    """One sample: of the single target, or of all of a mix or a pair of roles."""
    ways = aggregations(intent.owner.key, intent.annotations)
    for target in intent.targets:
        if not grants.allow(intent.owner.key.namespace, target.key.namespace):
            raise ProblemsError(_not_granted(intent, target))
    targets = tuple(_target(intent, target, ways) for target in intent.targets)
    return SamplePlan(
        key=intent.key,
        policy=intent.owner.key,
        identity=intent.identity,
        targets=targets,
    )


def _target(intent: ScalingIntent, target: IntentTarget, ways: Aggregations) -> TargetPlan:
    reader = MetricReader(
        owner=intent.owner.key, place=target.field, role=target.key.role, aggregations=ways
    )
    metrics = tuple(_metric(reader, metric, target) for metric in intent.metrics_of(target))
    if intent.by_objective(target):
        metrics = tuple(reader.of_objective(name, target.target) for name in OBJECTIVE_FAMILIES)
    return TargetPlan(
        key=target.key, metrics=metrics, beside=_beside(metrics) if intent.mix else ()
    )


def _beside(metrics: Sequence[PodMetric | PrometheusMetric]) -> tuple[PodMetric, ...]:
    """What a mix's capacities are learned from, on the first page that is read anyway."""
    first = next((metric for metric in metrics if isinstance(metric, PodMetric)), None)
    if first is None:
        return ()
    return tuple(
        replace(first, name=name, families=families_of(common))
        for name, common in (
            (OUTPUT_TOKENS, "kthena:generation_tokens_total"),
            (WAITING_REQUESTS, "kthena:num_requests_waiting"),
        )
    )


def _metric(
    reader: MetricReader, metric: PolicyMetric, target: IntentTarget
) -> PodMetric | PrometheusMetric:
    if target.role is not None:
        return reader.of_role(metric, target.role)
    assert target.target is not None
    return reader.of_target(metric, target.target)


def _not_granted(intent: ScalingIntent, target: IntentTarget) -> Problem:
    home, namespace = intent.owner.key.namespace, target.key.namespace
    return Problem(
        code=ErrorCode.PERMISSION_DENIED,
        message="the target is in another namespace",
        object=str(intent.owner.key),
        field=f"{target.field}.targetRef.namespace",
        value=namespace,
        remedy="move the policy, or grant it: "
        f"INFERBUS_METRICS_COLLECTOR_NAMESPACE_GRANTS={home}/{namespace}",
    )
