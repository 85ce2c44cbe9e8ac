"""Volcano as a cluster has it, for the tests of gang scheduling."""

from typing import Any

from workload_builders import role, serving
from workload_world import World

from inferbus_workload_reconciler.observed import Cluster

_INTEGER = {"type": "integer", "format": "int32"}
_TOPOLOGY = {
    "type": "object",
    "properties": {
        "mode": {"type": "string", "default": "hard"},
        "highestTierAllowed": {**_INTEGER, "default": 1},
    },
}
_LABELS = {"type": "object", "additionalProperties": {"type": "string"}}

OLD_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "minMember": {**_INTEGER, "default": 1},
        "minResources": {"type": "object", "additionalProperties": {"type": "string"}},
        "minTaskMember": {"type": "object", "additionalProperties": _INTEGER},
        "queue": {"type": "string", "default": "default"},
        "priorityClassName": {"type": "string"},
    },
}
"""PodGroups of a Volcano that knows neither subgroups nor network topology."""

NEW_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        **OLD_SCHEMA["properties"],
        "networkTopology": _TOPOLOGY,
        "subGroupPolicy": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "name": {"type": "string"},
                    "labelSelector": {"type": "object", "properties": {"matchLabels": _LABELS}},
                    "matchLabelKeys": {"type": "array", "items": {"type": "string"}},
                    "subGroupSize": _INTEGER,
                    "minSubGroups": _INTEGER,
                    "networkTopology": _TOPOLOGY,
                },
            },
        },
    },
}
"""PodGroups of Volcano 1.14."""

NEW = Cluster(volcano=True, pod_group_schema=NEW_SCHEMA)
OLD = Cluster(volcano=True, pod_group_schema=OLD_SCHEMA)
MISSING = Cluster(volcano=False)

MIXED = [role("prefill", workers=1), role("decode", replicas=2)]
"""Roles of the object that modelserving spec 2.12 expands."""


def gang(
    replicas: int = 1, roles: list[dict[str, Any]] | None = None, **fields: Any
) -> dict[str, Any]:
    """A ModelServing; gangPolicy and networkTopology go into its template."""
    template = {
        name: fields.pop(name) for name in ("gangPolicy", "networkTopology") if name in fields
    }
    document = serving(replicas, roles, **fields)
    document["spec"]["template"].update(template)
    return document


def on_volcano(document: dict[str, Any], cluster: Cluster = NEW) -> World:
    """A settled fleet in a cluster with Volcano."""
    world = World(document)
    world.cluster = cluster
    world.settle()
    return world
