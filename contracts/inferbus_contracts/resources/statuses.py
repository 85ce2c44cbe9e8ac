"""What objects say of themselves: the fields of `status`, kind by kind.

Invariant: every field that a service writes stands here, because the API server drops the others.
Nothing is required that an older controller may have left out. (modelserving spec 1.2, autoscaling
spec 1.5, modelbooster spec 1.4, routing spec 1.3, llmaz spec 1.1 to 1.5)
"""

from collections.abc import Mapping

from pydantic import BaseModel, Field

from inferbus_contracts.resources import kinds
from inferbus_contracts.resources.document import ResourcePart
from inferbus_contracts.resources.scalars import Flag, Integer


class Condition(ResourcePart):
    """One thing that is, or isn't, so."""

    type: str
    """What is said, e.g. Accepted or Ready."""
    status: str
    """True, False or Unknown."""
    reason: str | None = None
    """Why, in one word for programs."""
    message: str | None = None
    """Why, in a sentence for people."""
    observed_generation: Integer | None = None
    """The generation of the spec that it is said of."""
    last_transition_time: str | None = None
    """When the status last changed."""


class Status(ResourcePart):
    """What the object says of itself; written by the platform."""

    observed_generation: Integer | None = None
    """The generation of the spec that all this is about."""
    conditions: list[Condition] = Field(default_factory=list)
    """One of each type."""


class ModelServingStatus(Status):
    """Groups as they stand; written by the workload-reconciler."""

    replicas: Integer | None = None
    """Groups that exist, those being deleted among them."""
    available_replicas: Integer | None = None
    """Groups whose pods all run and are ready."""
    updated_replicas: Integer | None = None
    """Groups of the newest revision that are not being deleted."""
    current_replicas: Integer | None = None
    """Groups of earlier revisions that are not being deleted; at rest all groups."""
    current_revision: str | None = None
    """The revision that groups below the partition are made from."""
    update_revision: str | None = None
    """The revision that the spec describes."""
    label_selector: str | None = None
    """Selects one pod of each group, for autoscalers."""


class BackendStatus(ResourcePart):
    """One backend of a ModelBooster."""

    name: str
    """Name of the backend."""
    replicas: Integer | None = None
    """Replicas that run."""


class ModelBoosterStatus(Status):
    """What became of the model's backends."""

    backend_statuses: list[BackendStatus] = Field(default_factory=list)
    """One for each backend."""


class TargetScalingStatus(ResourcePart):
    """One thing that is scaled: a workload, or a role of one."""

    name: str
    """Name of the workload or role."""
    current_replicas: Integer | None = None
    """Replicas its spec asks for."""
    desired_replicas: Integer | None = None
    """Replicas that were decided last."""
    mode: str | None = None
    """Stable or Panic."""
    last_scale_time: str | None = None
    """When a decision last changed its replicas."""


class RatioStatus(ResourcePart):
    """The proportion of two roles."""

    numerator_role: str | None = None
    """The role whose replicas are divided."""
    denominator_role: str | None = None
    """The role whose replicas they are divided by."""
    current_ratio: str | None = None
    """Replicas of the one by those of the other, in decimals."""


class DisaggregatedStatus(ResourcePart):
    """Roles that are scaled apart."""

    roles: list[TargetScalingStatus] = Field(default_factory=list)
    """One for each role."""
    ratio_status: RatioStatus | None = None
    """The proportion of the roles."""
    ratio_adjusted: Flag | None = None
    """Whether the proportion gave a role another number than its load alone would have."""


class ScalingStatus(Status):
    """What is scaled, from how many replicas to how many; one of the three forms of targets."""

    homogeneous_status: TargetScalingStatus | None = None
    """The single target."""
    heterogeneous_status: list[TargetScalingStatus] = Field(default_factory=list)
    """The targets of a mix."""
    disaggregated_status: DisaggregatedStatus | None = None
    """The roles of a disaggregated target."""


class NetworkingStatus(Status):
    """Whether requests can go where the object says, and to how many endpoints."""

    endpoints: Integer | None = None
    """Endpoints that are selected."""
    ready_endpoints: Integer | None = None
    """Of those, the ones that take requests."""


class InferenceStatus(Status):
    """The pods that serve the claimed model."""

    replicas: Integer | None = None
    """Groups of pods that exist."""
    selector: str | None = None
    """Selects the leaders of the groups, for autoscalers."""


STATUSES: Mapping[str, type[BaseModel]] = {
    kinds.MODEL_BOOSTER: ModelBoosterStatus,
    kinds.MODEL_SERVING: ModelServingStatus,
    kinds.AUTOSCALING_POLICY: ScalingStatus,
    kinds.AUTOSCALING_POLICY_BINDING: ScalingStatus,
    kinds.MODEL_ROUTE: NetworkingStatus,
    kinds.MODEL_SERVER: NetworkingStatus,
    kinds.EXTERNAL_MODEL_PROVIDER: Status,
    kinds.OPEN_MODEL: Status,
    kinds.BACKEND_RUNTIME: Status,
    kinds.PLAYGROUND: InferenceStatus,
    kinds.INFERENCE_SERVICE: InferenceStatus,
}
"""By the kind's token."""
