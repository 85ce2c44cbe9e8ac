"""Policies and bindings of all versions, read into intents.

A binding that applies a policy (v0.1.0 to v0.4.0) and a policy that names its target itself
(v1.0.0) become the same `ScalingIntent`. Invariant: an object gives all of its intents or is told
as a problem. (autoscaling spec 1.2 to 1.4)
"""

from collections.abc import Iterator, Mapping
from typing import Any

from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.resources.autoscaling import AutoscalingPolicy
from inferbus_contracts.resources.kinds import (
    AUTOSCALING_POLICY,
    KINDS,
    MODEL_SERVING,
    find_kind,
)
from inferbus_contracts.resources.metadata import ObjectReference
from inferbus_contracts.resources.scaling_targets import (
    AutoscalingPolicyBinding,
    DisaggregatedTarget,
    HeterogeneousTarget,
    HomogeneousTarget,
)
from inferbus_contracts.scaling.intents import IntentTarget, PolicyObject, ScalingIntent


def read_policy_object(
    key: ObjectKey, uid: str, generation: int, document: Mapping[str, Any]
) -> PolicyObject:
    """A policy or binding from its normalised document."""
    body = {name: value for name, value in document.items() if name != "status"}
    resource = KINDS[key.kind].model.model_validate(body)
    assert isinstance(resource, AutoscalingPolicy | AutoscalingPolicyBinding)
    return PolicyObject(key=key, uid=uid, generation=generation, resource=resource)


def read_intents(
    item: PolicyObject, objects: Mapping[ObjectKey, PolicyObject]
) -> tuple[ScalingIntent, ...]:
    """What one object asks for, if nothing else wanted its targets; empty for a bare policy.

    Of several targets in one object the first counts in the order of autoscaling spec 2.1: mix,
    single, roles (all of them in one intent, by name). Raises `ProblemsError` when the bound policy
    is missing or a target has no name.
    """
    if isinstance(item.resource, AutoscalingPolicyBinding):
        spec = item.resource.spec
        policy = _bound_policy(item, item.resource, objects)
        return tuple(_read(item, policy, spec.homogeneous, spec.heterogeneous, None))
    own = item.resource.spec
    return tuple(
        _read(
            item,
            item,
            own.homogeneous_target,
            own.heterogeneous_target,
            own.disaggregated_target,
        )
    )


def _read(
    owner: PolicyObject,
    policy: PolicyObject,
    single: HomogeneousTarget | None,
    mix: HeterogeneousTarget | None,
    roles: DisaggregatedTarget | None,
) -> Iterator[ScalingIntent]:
    assert isinstance(policy.resource, AutoscalingPolicy)
    body = policy.resource.spec
    if mix is not None:
        yield ScalingIntent(
            owner=owner,
            policy=policy,
            body=body,
            targets=_mixed(owner, mix),
            mix=True,
            cost_expansion_rate_percent=mix.cost_expansion_rate_percent,
        )
    elif single is not None:
        target = _target(owner, single, "spec.target")
        yield ScalingIntent(owner=owner, policy=policy, body=body, targets=(target,))
    elif roles is not None:
        yield ScalingIntent(
            owner=owner,
            policy=policy,
            body=body,
            targets=tuple(_role(owner, roles, name) for name in sorted(roles.roles)),
            ratio=roles.ratio_constraint,
        )


def _mixed(owner: PolicyObject, mix: HeterogeneousTarget) -> tuple[IntentTarget, ...]:
    """A target that stands twice counts once, as it stands first."""
    targets: dict[ObjectKey, IntentTarget] = {}
    for index, param in enumerate(mix.params):
        target = _target(owner, param, f"spec.params[{index}].target", param.cost)
        targets.setdefault(target.key, target)
    return tuple(targets.values())


def _target(
    owner: PolicyObject, item: HomogeneousTarget, place: str, cost: int = 0
) -> IntentTarget:
    part = item.target.sub_targets
    key = _key(owner, item.target.target_ref, place)._replace(role=(part and part.name) or "")
    return IntentTarget(
        key=key,
        field=place,
        min_replicas=item.min_replicas,
        max_replicas=item.max_replicas,
        cost=cost,
        target=item.target,
    )


def _role(owner: PolicyObject, roles: DisaggregatedTarget, name: str) -> IntentTarget:
    place = f"spec.disaggregatedTarget.roles.{name}"
    scaling = roles.roles[name]
    return IntentTarget(
        key=_key(owner, roles.target_ref, "spec.disaggregatedTarget")._replace(role=name),
        field=place,
        min_replicas=scaling.min_replicas,
        max_replicas=scaling.max_replicas,
        role=scaling,
    )


def _key(owner: PolicyObject, reference: ObjectReference, place: str) -> ObjectKey:
    """Only policies may name another namespace, and whether they do it rightly is not said here."""
    if not reference.name:
        raise ProblemsError(
            Problem(
                code=ErrorCode.MISSING_FIELD,
                message="the policy names no target",
                object=str(owner.key),
                field=f"{place}.targetRef.name",
                remedy="name the workload to scale",
            )
        )
    home = owner.key.namespace
    foreign = owner.key.kind == AUTOSCALING_POLICY and reference.namespace
    kind = reference.kind or MODEL_SERVING
    known = find_kind(reference.api_version or "", kind)
    return ObjectKey(known.token if known else kind, foreign or home, reference.name)


def _bound_policy(
    item: PolicyObject,
    binding: AutoscalingPolicyBinding,
    objects: Mapping[ObjectKey, PolicyObject],
) -> PolicyObject:
    name = binding.spec.policy_ref.name or ""
    policy = objects.get(ObjectKey(AUTOSCALING_POLICY, item.key.namespace, name))
    if policy is None:
        raise ProblemsError(
            Problem(
                code=ErrorCode.MISSING_REFERENCE,
                message="the binding's policy does not exist",
                object=str(item.key),
                field="spec.policyRef.name",
                value=name,
                remedy="create the policy in the same namespace, or correct the name",
            )
        )
    return policy
