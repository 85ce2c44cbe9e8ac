"""Who runs the LeaderWorkerSets of a cluster: their own controller, or this platform.

The spec-watcher makes LeaderWorkerSets for their controller; the workload-reconciler runs those of
users where there is none. Both ask here, so that no object is run twice or by nobody.

Invariant: what is produced is never accepted: one of the two holds of an object at most. Without a
cluster the platform runs its own LeaderWorkerSets, and nothing of this applies.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any, Final

from inferbus_contracts.resources.kinds import (
    LLMAZ_GROUP,
    LLMAZ_INFERENCE_GROUP,
    NETWORKING_GROUP,
    WORKLOAD_GROUP,
)

OUR_MANAGERS: Final = "inferbus-"
"""How the field managers of this platform begin."""

LEASE: Final = "b8b2488c.x-k8s.io"
"""The lease of their controller, which elects a leader unless told otherwise; its pods bear no
label of their own (kubernetes-sigs/lws, `config/manager`)."""

MANAGED_BY: Final = f"{WORKLOAD_GROUP}/managed-by"
"""Label of objects that were made from others of this platform's kinds."""

_OUR_GROUPS: Final = frozenset(
    {WORKLOAD_GROUP, NETWORKING_GROUP, LLMAZ_GROUP, LLMAZ_INFERENCE_GROUP}
)


class LeaderWorkerSets(StrEnum):
    """Who is to run them, as a setting says."""

    AUTO = "auto"
    """Their own controller where it is seen."""
    CONTROLLER = "controller"
    """Their own controller, seen or not."""
    PLATFORM = "platform"
    """This platform; nobody else is there."""


def controller_sign(
    setting: LeaderWorkerSets, lease_holder: str, objects: Iterable[Mapping[str, Any]]
) -> str:
    """What shows that the controller of LeaderWorkerSets is there; empty when nothing does.

    `lease_holder` is who renews its lease, empty when nobody does; `objects` are LeaderWorkerSets
    of the cluster, of which one whose status it wrote is enough. A status proves less than a lease:
    it stays when its writer goes, and then the setting has to say so.
    """
    if setting is LeaderWorkerSets.PLATFORM:
        return ""
    if setting is LeaderWorkerSets.CONTROLLER:
        return "the settings say that their controller runs"
    if lease_holder:
        return f"{lease_holder} renews the lease of their controller"
    writers = ((one["metadata"]["name"], _status_writer(one)) for one in objects)
    name, writer = next(((name, one) for name, one in writers if one), ("", ""))
    return f"{writer} writes the status of {name}" if writer else ""


def rule_fields(document: Mapping[str, Any]) -> dict[str, Any]:
    """What of a LeaderWorkerSet this rule reads: all that has to be kept of one to ask here."""
    metadata = document["metadata"]
    labels = metadata.get("labels") or {}
    return {
        "metadata": {
            "name": metadata["name"],
            "labels": {name: labels[name] for name in labels if name == MANAGED_BY},
            "ownerReferences": list(metadata.get("ownerReferences") or ()),
            "managedFields": [
                {"manager": one.get("manager", ""), "subresource": "status"}
                for one in metadata.get("managedFields") or ()
                if one.get("subresource") == "status"
            ],
        }
    }


def is_produced(served: bool, sign: str) -> bool:
    """Whether a short kind that asks for a LeaderWorkerSet becomes one of the cluster's.

    `served` says whether the API server knows the kind, `sign` is `controller_sign`'s.
    """
    return served and bool(sign)


def input_refusal(document: Mapping[str, Any], sign: str) -> str:
    """Why this platform doesn't run a LeaderWorkerSet of a cluster; empty when it does."""
    maker = _maker(document)
    if maker:
        return f"it was made from {maker} for the controller of LeaderWorkerSets"
    return f"the controller of LeaderWorkerSets runs it: {sign}" if sign else ""


def _maker(document: Mapping[str, Any]) -> str:
    """What of this platform's kinds an object was made from; empty when from none."""
    metadata = document["metadata"]
    for owner in metadata.get("ownerReferences") or ():
        if str(owner.get("apiVersion", "")).partition("/")[0] in _OUR_GROUPS:
            return f"{owner.get('kind')} {owner.get('name')}"
    return "another object" if MANAGED_BY in (metadata.get("labels") or {}) else ""


def _status_writer(document: Mapping[str, Any]) -> str:
    """Who else than this platform wrote the status of an object."""
    for entry in document["metadata"].get("managedFields") or ():
        manager = str(entry.get("manager", ""))
        if entry.get("subresource") == "status" and not manager.startswith(OUR_MANAGERS):
            return manager
    return ""
