"""What a ModelServing says to a gang scheduler: gangPolicy, networkTopology and its queue.

Invariant: networkTopology means the same in both of its shapes (ruling "networkTopology"); the
shape of v0.1.0, one level with a default tier of 1, is read as the policy of groups.
"""

from collections.abc import Mapping
from typing import Any, Final

from inferbus_workload_reconciler.policy_fields import FieldReader
from inferbus_workload_reconciler.workload import Gang

QUEUE: Final = "scheduling.volcano.sh/queue-name"
"""On a ModelServing: the queue of its groups (modelserving spec 2.3)."""

_LEVEL: Final = {"mode": str, "highestTierAllowed": int, "highestTierName": str}


def parse_gang(metadata: FieldReader, template: FieldReader) -> Gang:
    """Read metadata and `spec.template`; raises `ProblemsError` for a mistyped field."""
    policy = template.part("gangPolicy")
    least = policy.part("minRoleReplicas")
    topology = template.part("networkTopology")
    return Gang(
        min_role_replicas={name: max(0, least.need(name, int)) for name in least.document},
        group_topology=topology_level(topology, "groupPolicy") or _flat(topology),
        role_topology=topology_level(topology, "rolePolicy"),
        queue=metadata.part("annotations").get(QUEUE, str, ""),
        stated=bool(policy.document or topology.document),
    )


def topology_level(reader: FieldReader, field: str) -> Mapping[str, Any] | None:
    """One {mode, highestTierAllowed, highestTierName}; None where the field is absent."""
    if reader.get(field, Mapping) is None:
        return None
    return {"mode": "hard", **_given(reader.part(field))}


def _flat(topology: FieldReader) -> Mapping[str, Any] | None:
    given = _given(topology)
    if not given:
        return None
    tier = {} if {"highestTierAllowed", "highestTierName"} & given.keys() else _DEFAULT_TIER
    return {"mode": "hard", **tier, **given}


_DEFAULT_TIER: Final = {"highestTierAllowed": 1}


def _given(level: FieldReader) -> dict[str, Any]:
    values = {key: level.get(key, type_) for key, type_ in _LEVEL.items()}
    return {key: value for key, value in values.items() if value is not None}
