"""Fields that upstream's mutating webhooks set on the stored object, beside its spec's defaults.

The spec-watcher sets them with server-side apply under its own field manager (ruling 6 of
precedence), so this gives only what it should own, never the whole object.
"""

from datetime import UTC, datetime
from typing import Any

from inferbus_contracts.resources.inference import Playground
from inferbus_contracts.resources.metadata import Resource
from inferbus_contracts.resources.open_model import OpenModel

FAMILY_LABEL = "llmaz.io/model-family-name"
MODEL_LABEL = "llmaz.io/model-name"


def stamped_labels(resource: Resource) -> dict[str, str]:
    """Labels an admitted object should carry, whatever its author wrote (llmaz spec 1.6)."""
    if isinstance(resource, OpenModel):
        return {FAMILY_LABEL: resource.spec.family_name}
    if isinstance(resource, Playground) and resource.main_model is not None:
        return {MODEL_LABEL: resource.main_model}
    return {}


def stamps(resource: Resource, now_ms: int) -> dict[str, Any]:
    """The fields to apply to an admitted object; empty when there are none.

    `now_ms` (milliseconds since 1970) becomes `spec.createdAt` of an OpenModel that has none, cut
    to seconds.
    """
    fields: dict[str, Any] = {}
    labels = stamped_labels(resource)
    if labels:
        fields["metadata"] = {"labels": labels}
    if isinstance(resource, OpenModel) and resource.spec.created_at is None:
        moment = datetime.fromtimestamp(now_ms // 1000, UTC)
        fields["spec"] = {"createdAt": f"{moment:%Y-%m-%dT%H:%M:%SZ}"}
    return fields
