"""The scaling policies among the stored objects."""

from collections.abc import Iterable

from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.resources.autoscaling import AutoscalingPolicy
from inferbus_contracts.resources.kinds import (
    AUTOSCALING_POLICY,
    AUTOSCALING_POLICY_BINDING,
    KINDS,
)
from inferbus_contracts.resources.scaling_targets import AutoscalingPolicyBinding
from inferbus_contracts.scaling_intents import PolicyObject, Settled, scaled_roles, settle
from inferbus_spec_watcher.policy_objects import Stored, typed


def settled(objects: Iterable[tuple[ObjectKey, Stored]]) -> Settled:
    """Who scales what."""
    policies: dict[ObjectKey, PolicyObject] = {}
    for key, stored in objects:
        if key.kind not in (AUTOSCALING_POLICY, AUTOSCALING_POLICY_BINDING):
            continue
        resource = typed(KINDS[key.kind], stored.object)
        assert isinstance(resource, AutoscalingPolicy | AutoscalingPolicyBinding)
        policies[key] = PolicyObject(
            key=key, uid=stored.uid, generation=stored.generation, resource=resource
        )
    return settle(policies)


def owned_replicas(
    objects: Iterable[tuple[ObjectKey, Stored]],
) -> dict[ObjectKey, frozenset[str]]:
    """The roles of each object ("" for itself) whose replicas a policy owns."""
    return scaled_roles(settled(objects).owners)
