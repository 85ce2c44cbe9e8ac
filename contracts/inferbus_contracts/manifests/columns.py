"""What `kubectl get` shows of each kind (modelserving spec 1, modelbooster spec 1.4, llmaz spec 1).

The columns of the reference systems keep their names; the others are ours.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from inferbus_contracts.resources import kinds


@dataclass(frozen=True)
class Column:
    """One column; those of priority 1 are shown with `-o wide` alone."""

    name: str
    path: str
    type: str = "string"
    priority: int = 0


def _condition(type_: str, field: str = "status") -> str:
    return f'.status.conditions[?(@.type=="{type_}")].{field}'


_AGE = Column("Age", ".metadata.creationTimestamp", "date")
_ACCEPTED = Column("Accepted", _condition("Accepted"))
_READY = Column("Ready", _condition("Ready"))
_STATUS = Column("Status", _condition("Available", "reason"))

COLUMNS: Mapping[str, tuple[Column, ...]] = {
    kinds.MODEL_BOOSTER: (Column("Active", _condition("Active")), _ACCEPTED, _AGE),
    kinds.MODEL_SERVING: (
        Column("Replicas", ".status.replicas", "integer"),
        Column("Available", ".status.availableReplicas", "integer"),
        Column("Updated", ".status.updatedReplicas", "integer"),
        _AGE,
        Column("Desired", ".spec.replicas", "integer", 1),
        Column("Revision", ".status.updateRevision", priority=1),
    ),
    kinds.AUTOSCALING_POLICY: (
        _READY,
        Column("Target", ".status.homogeneousStatus.name"),
        Column("Current", ".status.homogeneousStatus.currentReplicas", "integer"),
        Column("Desired", ".status.homogeneousStatus.desiredReplicas", "integer"),
        _AGE,
    ),
    kinds.AUTOSCALING_POLICY_BINDING: (
        Column("Policy", ".spec.policyRef.name"),
        _READY,
        Column("Current", ".status.homogeneousStatus.currentReplicas", "integer"),
        Column("Desired", ".status.homogeneousStatus.desiredReplicas", "integer"),
        _AGE,
    ),
    kinds.MODEL_ROUTE: (
        Column("Model", ".spec.modelName"),
        _READY,
        Column("Endpoints", ".status.readyEndpoints", "integer"),
        _AGE,
    ),
    kinds.MODEL_SERVER: (
        Column("Engine", ".spec.inferenceEngine"),
        Column("Port", ".spec.workloadPort.port", "integer"),
        _READY,
        Column("Endpoints", ".status.readyEndpoints", "integer"),
        _AGE,
    ),
    kinds.EXTERNAL_MODEL_PROVIDER: (
        Column("Provider", ".spec.providerType"),
        Column("URL", ".spec.baseURL"),
        _ACCEPTED,
        _AGE,
    ),
    kinds.OPEN_MODEL: (
        Column("OwnedBy", ".spec.ownedBy"),
        Column("ModelHub", ".spec.source.modelHub.name"),
        Column("ModelID", ".spec.source.modelHub.modelID"),
        Column("URI", ".spec.source.uri"),
        _AGE,
    ),
    kinds.BACKEND_RUNTIME: (
        Column("Image", ".spec.image"),
        Column("Version", ".spec.version"),
        _AGE,
    ),
    kinds.PLAYGROUND: (
        Column("Model", r".metadata.labels.llmaz\.io/model-name"),
        Column("Replicas", ".status.replicas", "integer"),
        _STATUS,
        _AGE,
    ),
    kinds.INFERENCE_SERVICE: (Column("Replicas", ".status.replicas", "integer"), _STATUS, _AGE),
}
"""By the kind's token."""
