"""The tables of rules of AutoscalingPolicy and AutoscalingPolicyBinding (autoscaling spec 1.6)."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain

from inferbus_contracts.admission import rules_policy as policy
from inferbus_contracts.admission import rules_roles as roles
from inferbus_contracts.admission import rules_targets as targets
from inferbus_contracts.admission.paths import child
from inferbus_contracts.admission.rule import (
    Finding,
    Findings,
    Rule,
    accepted,
    error,
    warning,
)
from inferbus_contracts.errors import ErrorCode
from inferbus_contracts.resources.annotations import OBJECTIVE
from inferbus_contracts.resources.autoscaling import AutoscalingPolicy
from inferbus_contracts.resources.metadata import ObjectReference
from inferbus_contracts.resources.metric_sources import PolicyMetric
from inferbus_contracts.resources.scaling_targets import (
    AutoscalingPolicyBinding,
    HeterogeneousTarget,
    HomogeneousTarget,
)

Scaler = AutoscalingPolicy | AutoscalingPolicyBinding


@dataclass(frozen=True, kw_only=True)
class Scaled:
    """What a policy or a binding scales, each with its path."""

    singles: dict[str, HomogeneousTarget] = field(default_factory=dict)
    mixes: dict[str, HeterogeneousTarget] = field(default_factory=dict)

    @property
    def targets(self) -> dict[str, HomogeneousTarget]:
        """Every single target and every target of a mix."""
        mixed = {
            f"{path}.params[{index}]": param
            for path, mix in self.mixes.items()
            for index, param in enumerate(mix.params)
        }
        return self.singles | mixed


def scaled_by(resource: Scaler) -> Scaled:
    """What is scaled, under whichever version's field names."""
    spec = resource.spec
    singles = {"spec.homogeneousTarget": spec.homogeneous_target}
    mixes = {"spec.heterogeneousTarget": spec.heterogeneous_target}
    if isinstance(resource, AutoscalingPolicyBinding):
        singles["spec.scalingConfiguration"] = resource.spec.scaling_configuration
        mixes["spec.optimizerConfiguration"] = resource.spec.optimizer_configuration
    return Scaled(
        singles={path: single for path, single in singles.items() if single is not None},
        mixes={path: mix for path, mix in mixes.items() if mix is not None},
    )


def one_target(resource: AutoscalingPolicy) -> Iterator[Finding]:
    """A policy scales one thing; none is v0.1.0's form, where a binding names it."""
    scaled = scaled_by(resource)
    given = [*scaled.singles, *scaled.mixes]
    if resource.spec.disaggregated_target is not None:
        given.append(roles.PATH)
    if len(given) > 1:
        yield Finding(
            field=given[1],
            message=f"the policy already has {given[0].removeprefix('spec.')}",
            remedy="keep one target, and write a policy for each",
        )


def one_configuration(resource: AutoscalingPolicyBinding) -> Iterator[Finding]:
    """A binding is for a single target or a mix, under one spelling."""
    scaled = scaled_by(resource)
    given = [path.removeprefix("spec.") for path in (*scaled.singles, *scaled.mixes)]
    if len(given) != 1:
        yield Finding(
            field="spec",
            message="should have exactly one of scalingConfiguration and optimizerConfiguration",
            value=", ".join(given) or None,
            remedy="use scalingConfiguration for one workload, optimizerConfiguration for a mix",
        )


def policy_named(resource: AutoscalingPolicyBinding) -> Iterator[Finding]:
    """A binding ties a policy."""
    if not resource.spec.policy_ref.name:
        yield Finding(
            code=ErrorCode.MISSING_FIELD,
            field="spec.policyRef.name",
            message="the binding names no policy",
            remedy="add the name of an AutoscalingPolicy of the same namespace",
        )


def metrics_present(resource: AutoscalingPolicy) -> Findings:
    """Required, unless roles bring their own (rule 6) or an objective takes their place."""
    if resource.spec.disaggregated_target is not None or OBJECTIVE in resource.annotations:
        return ()
    return policy.metrics_present(resource.spec, "spec")


def windows_short(resource: AutoscalingPolicy) -> Findings:
    """Time spans of the policy's behaviour."""
    return policy.windows_short(resource.spec, "spec")


def source_keys_known(resource: AutoscalingPolicy) -> Findings:
    """Sources of single targets and mixes match the policy's metrics."""
    return chain.from_iterable(
        targets.source_keys_known(target.target, resource.spec.metrics, f"{path}.target")
        for path, target in scaled_by(resource).targets.items()
    )


def references_named(resource: Scaler) -> Findings:
    """Every reference names something."""
    return _references(resource, targets.reference_named)


def references_are_servings(resource: Scaler) -> Findings:
    """Every reference is to what can be scaled."""
    return _references(resource, targets.reference_is_serving)


def _references(
    resource: Scaler, check: Callable[[ObjectReference, str], Findings]
) -> Iterator[Finding]:
    for path, target in scaled_by(resource).targets.items():
        yield from check(target.target.target_ref, f"{path}.target.targetRef")
    split = resource.spec.disaggregated_target if isinstance(resource, AutoscalingPolicy) else None
    if split is not None:
        yield from check(split.target_ref, f"{roles.PATH}.targetRef")


def _each_target(
    check: Callable[[HomogeneousTarget, str], Findings],
) -> Callable[[Scaler], Findings]:
    return lambda resource: chain.from_iterable(
        check(target, path) for path, target in scaled_by(resource).targets.items()
    )


def _each_mix(
    check: Callable[[HeterogeneousTarget, str], Findings],
) -> Callable[[Scaler], Findings]:
    return lambda resource: chain.from_iterable(
        check(mix, path) for path, mix in scaled_by(resource).mixes.items()
    )


def _each_metric_list(
    check: Callable[[Sequence[PolicyMetric], str], Findings],
) -> Callable[[AutoscalingPolicy], Findings]:
    def checked(resource: AutoscalingPolicy) -> Iterator[Finding]:
        yield from check(resource.spec.metrics, "spec.metrics")
        for path, role in roles.roles_of(resource):
            yield from check(role.metrics or [], child(path, "metrics"))

    return checked


TARGET_RULES: tuple[Rule, ...] = (
    error("AS-4a", "autoscaling 1.6 (4)", "it refers to nothing", references_named),
    warning(
        "AS-4b",
        "autoscaling 1.6 (4)",
        "v0.1.0's schema takes any kind, and others have replicas too",
        references_are_servings,
    ),
    warning(
        "AS-RANGE",
        "autoscaling 7 (D18)",
        "every version accepts it and holds the target at maxReplicas",
        _each_target(targets.bounds_ordered),
    ),
    error(
        "AS-SUBTARGET",
        "autoscaling 1.3",
        "nothing else inside a workload has replicas",
        _each_target(targets.sub_target_is_role),
    ),
    warning(
        "AS-URI",
        "autoscaling 1.4",
        "the intent is plain; only the newest schema demands the slash",
        _each_target(targets.page_paths_rooted),
    ),
    error(
        "AS-SOURCE",
        "autoscaling 1.4",
        "no value could be read",
        _each_target(targets.target_sources_well_formed),
    ),
    error(
        "AS-TWICE",
        "autoscaling 7 (D18)",
        "one workload can't have two numbers of replicas",
        _each_mix(targets.targets_distinct),
    ),
)

POLICY_RULES: tuple[Rule, ...] = (
    error(
        "AS-1a",
        "autoscaling 1.6 (1)",
        "no number of replicas reaches it",
        _each_metric_list(policy.targets_positive),
    ),
    error(
        "AS-1b",
        "autoscaling 1.6 (1); ruling 5 of precedence",
        "a metric's name identifies it",
        _each_metric_list(policy.metric_names_unique),
    ),
    error("AS-1c", "autoscaling 1.2", "it can't be read", _each_metric_list(policy.metric_names)),
    warning(
        "AS-1d",
        "autoscaling 1.2",
        "v0.1.0's spelling wins over later ones",
        _each_metric_list(policy.metric_names_agree),
    ),
    warning(
        "AS-2",
        "autoscaling 1.6 (2)",
        "v0.1.0's schema has no upper bound, and longer windows work here",
        windows_short,
    ),
    error("AS-3", "autoscaling 1.6 (3)", "which of them is meant can't be told", one_target),
    error(
        "AS-5",
        "autoscaling 1.2, 1.6 (5)",
        "v0.1.0 requires it; nothing would move",
        metrics_present,
    ),
    warning(
        "AS-KEYS",
        "autoscaling 1.4",
        "every version accepts it and takes the metric for missing",
        source_keys_known,
    ),
    *TARGET_RULES,
    *roles.RULES,
)

BINDING_RULES: tuple[Rule, ...] = (
    error("AS-B1", "autoscaling 1.3", "v0.1.0's schema refuses it", one_configuration),
    error("AS-B2", "autoscaling 1.3", "no policy could be found", policy_named),
    accepted(
        "AS-B3", "autoscaling 1.6", "the policy may come later; whether it exists is a condition"
    ),
    *TARGET_RULES,
)
