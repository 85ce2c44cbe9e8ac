"""Playground and inference Service: a claimed model, served.

Invariant: `ModelClaims.main` and `Playground.main_model` give the model that names, labels and
routes refer to, and `None` only where nothing is claimed (llmaz spec 1.2 to 1.4).
"""

from enum import StrEnum
from typing import Annotated, Any

from pydantic import Field

from inferbus_contracts.resources.backend_runtime import ResourceAmounts, ScaleTrigger
from inferbus_contracts.resources.document import ResourcePart
from inferbus_contracts.resources.metadata import Resource
from inferbus_contracts.resources.scalars import Count, Integer, IntOrPercent, Quantity

DEFAULT_BACKEND = "vllm"
MODEL_RUNNER = "model-runner"
"""The container that runs the engine."""


class ModelRole(StrEnum):
    """The part a model plays: the one that answers, or the one that drafts for it."""

    MAIN = "main"
    DRAFT = "draft"


class ModelRef(ResourcePart):
    """One claimed model."""

    name: str
    """Name of the OpenModel."""
    role: ModelRole = ModelRole.MAIN


class ModelClaim(ResourcePart):
    """A claim of one model."""

    model_name: str
    """Name of the OpenModel."""
    inference_flavors: list[str] = Field(default_factory=list)
    """Names of the model's flavors to use; empty means all, in the model's order."""


class ModelClaims(ResourcePart):
    """A claim of several models; flavors are those of the main one."""

    models: list[ModelRef] = Field(min_length=1)
    """A main model, and perhaps a draft."""
    inference_flavors: list[str] = Field(default_factory=list)
    """Names of the main model's flavors to use; empty means all."""

    @property
    def main(self) -> str:
        """The main model; of several the last one claimed (llmaz spec 2.4)."""
        mains = [model.name for model in self.models if model.role is ModelRole.MAIN]
        return mains[-1] if mains else self.models[0].name


class BackendRuntimeConfig(ResourcePart):
    """Which engine runs the model, and what is different from its recommended settings."""

    backend_name: str = DEFAULT_BACKEND
    """Name of the BackendRuntime."""
    version: str | None = None
    """Tag of the image; absent means the runtime's own."""
    envs: list[dict[str, Any]] = Field(default_factory=list)
    """Environment, in place of the runtime's variables of the same names."""
    config_name: str | None = None
    """A recommended configuration by name; absent means the one that fits the claim."""
    args: list[str] = Field(default_factory=list)
    """Further arguments, passed on as they are."""
    resources: ResourceAmounts | None = None
    shared_memory_size: Quantity | None = None
    """Size of the shared memory of a pod."""


class ElasticConfig(ResourcePart):
    """Bounds of the replicas and what moves them."""

    min_replicas: Integer = 1
    """The least replicas."""
    max_replicas: Annotated[Integer, Field(ge=1, le=2**31 - 1)] | None = None
    """Absent means no limit (rulings F9 to F12)."""
    scale_trigger: ScaleTrigger | None = None


class PlaygroundSpec(ResourcePart):
    """A model to be served with defaults for everything else."""

    replicas: Count = 1
    """Groups of pods that serve the model."""
    model_claim: ModelClaim | None = None
    model_claims: ModelClaims | None = None
    backend_runtime_config: BackendRuntimeConfig | None = None
    elastic_config: ElasticConfig | None = None


class Playground(Resource):
    """A model to be served."""

    spec: PlaygroundSpec

    @property
    def main_model(self) -> str | None:
        """Name of the OpenModel that answers."""
        if self.spec.model_claim is not None:
            return self.spec.model_claim.model_name
        return self.spec.model_claims.main if self.spec.model_claims is not None else None

    @property
    def backend_name(self) -> str:
        """Name of the BackendRuntime."""
        config = self.spec.backend_runtime_config
        return config.backend_name if config is not None else DEFAULT_BACKEND


class RestartPolicy(StrEnum):
    """What is restarted when a pod of a leader-worker group does."""

    DEFAULT = "Default"
    RECREATE_GROUP = "RecreateGroupOnPodRestart"
    NONE = "None"


class WorkloadTemplate(ResourcePart):
    """A group of pods: a leader and workers, or one pod."""

    leader_template: dict[str, Any] | None = None
    """core/v1 PodTemplateSpec; given, the group has several hosts."""
    worker_template: dict[str, Any]
    """core/v1 PodTemplateSpec."""
    size: Annotated[Integer, Field(ge=1, le=2**31 - 1)] = 1
    """Pods of one group, the leader included."""
    restart_policy: RestartPolicy = RestartPolicy.RECREATE_GROUP
    sub_group_policy: dict[str, Any] | None = None
    """How a group is divided, as LeaderWorkerSet has it."""


class GroupRolloutType(StrEnum):
    """How changes of the template reach running groups."""

    ROLLING_UPDATE = "RollingUpdate"


class GroupRollingUpdate(ResourcePart):
    """How many groups may be away or extra during a rollout."""

    partition: Count | None = None
    """Groups below this ordinal keep the old template."""
    max_unavailable: IntOrPercent = 1
    """Groups that may be away at a time."""
    max_surge: IntOrPercent = 0
    """Groups that may be there beyond the replicas."""


class GroupRolloutStrategy(ResourcePart):
    """How changes of the template reach running groups."""

    type: GroupRolloutType = GroupRolloutType.ROLLING_UPDATE
    rolling_update_configuration: GroupRollingUpdate = Field(default_factory=GroupRollingUpdate)


class InferenceServiceSpec(ResourcePart):
    """Claimed models and the pods that serve them."""

    model_claims: ModelClaims
    replicas: Count = 1
    """Groups of pods."""
    workload_template: WorkloadTemplate
    rollout_strategy: GroupRolloutStrategy = Field(default_factory=GroupRolloutStrategy)


class InferenceService(Resource):
    """llmaz's `Service`: claimed models served by groups of pods."""

    spec: InferenceServiceSpec
