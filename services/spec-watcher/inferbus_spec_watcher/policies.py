"""The scaling policies among the stored objects."""

from collections.abc import Iterable

from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.resources.kinds import AUTOSCALING_POLICY, AUTOSCALING_POLICY_BINDING
from inferbus_contracts.scaling_intents import Settled, read_policy_object, scaled_roles, settle
from inferbus_shared.objects.picture import StoredObject


def settled(objects: Iterable[tuple[ObjectKey, StoredObject]]) -> Settled:
    """Who scales what."""
    return settle(
        {
            key: read_policy_object(key, stored.uid, stored.generation, stored.object)
            for key, stored in objects
            if key.kind in (AUTOSCALING_POLICY, AUTOSCALING_POLICY_BINDING)
        }
    )


def owned_replicas(
    objects: Iterable[tuple[ObjectKey, StoredObject]],
) -> dict[ObjectKey, frozenset[str]]:
    """The roles of each object ("" for itself) whose replicas a policy owns."""
    return scaled_roles(settled(objects).owners)
