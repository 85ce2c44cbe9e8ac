"""Which fields of a cluster's object the platform sets itself, as upstream's mutating webhooks did.

Pure. Invariants: nothing but these fields is claimed; a time that was set once stays (ruling 6 of
precedence; llmaz spec 1.6).
"""

from typing import Any

from inferbus_contracts.admission import stamps
from inferbus_contracts.resources.kinds import kind_of
from inferbus_spec_watcher.policy_claims import claims_field, is_applied
from inferbus_spec_watcher.policy_cluster_objects import ClusterObject
from inferbus_spec_watcher.policy_cluster_units import bare
from inferbus_spec_watcher.policy_objects import STAMP_MANAGER


def missing_stamps(stored: ClusterObject, now_ms: int) -> dict[str, Any] | None:
    """The manifest to apply to an object; None where nothing is missing, and for refused ones."""
    kind = kind_of(stored.object)
    if kind.supporting or stored.problems:
        return None
    body = {name: value for name, value in stored.object.items() if name != "status"}
    fields = stamps(kind.model.model_validate(body), now_ms)
    claims = stored.claims.get(STAMP_MANAGER, {})
    if claims_field(claims, "spec", "createdAt"):
        fields["spec"] = {"createdAt": stored.object["spec"]["createdAt"]}
    manifest = bare(stored.object)
    manifest["metadata"] |= fields.pop("metadata", {})
    manifest |= fields
    return None if is_applied(manifest, stored.object, claims) else manifest
