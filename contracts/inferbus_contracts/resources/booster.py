"""ModelBooster: one document from which a whole serving set-up is derived.

Invariant: the union of all versions (modelbooster spec 1.1 to 1.3); `admission.backends` and
`Backend.bounds` read either version's form.
"""

from enum import StrEnum
from typing import Annotated, Any

from pydantic import Field

from inferbus_contracts.resources.autoscaling import PolicyBody
from inferbus_contracts.resources.document import ResourcePart
from inferbus_contracts.resources.metadata import Resource
from inferbus_contracts.resources.networking import ModelMatch
from inferbus_contracts.resources.scalars import (
    Count,
    Duration,
    Integer,
    MaxReplicas,
    Replicas,
    parse_duration_ms,
)

_NAME_PATTERN = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"

ModelURI = Annotated[str, Field(pattern="^(hf|s3|pvc|obs|ms)://.+")]
"""hf, s3 and pvc in v0.1.0; obs and ms later."""


class BackendType(StrEnum):
    """The engine of a backend, and whether prefill and decode are apart."""

    VLLM = "vLLM"
    VLLM_DISAGGREGATED = "vLLMDisaggregated"
    SGLANG = "SGLang"
    MINDIE = "MindIE"
    MINDIE_DISAGGREGATED = "MindIEDisaggregated"

    @property
    def disaggregated(self) -> bool:
        """Prefill and decode run in pods of their own."""
        return self in (BackendType.VLLM_DISAGGREGATED, BackendType.MINDIE_DISAGGREGATED)


class WorkerType(StrEnum):
    """The part a worker plays in its backend."""

    SERVER = "server"
    PREFILL = "prefill"
    DECODE = "decode"
    CONTROLLER = "controller"
    COORDINATOR = "coordinator"

    @property
    def serves(self) -> bool:
        """Runs an engine, so that it can't be meant to have no pods (ruling F18)."""
        return self in (WorkerType.SERVER, WorkerType.PREFILL, WorkerType.DECODE)


class Worker(ResourcePart):
    """One kind of pod of a backend."""

    type: WorkerType = WorkerType.SERVER
    image: str | None = None
    """Image of the engine."""
    replicas: Replicas | None = None
    """Pods, or groups of pods, of this kind in one replica of the backend."""
    pods: Replicas | None = None
    """Pods of one server instance; ignored for prefill and decode."""
    resources: dict[str, Any] | None = None
    """What the engine's container asks for and may use, as core/v1 has it."""
    affinity: dict[str, Any] | None = None
    """Affinity of the pods, as core/v1 has it."""
    tolerations: list[dict[str, Any]] = Field(default_factory=list)
    """Tolerations of the pods, as core/v1 has them."""
    config: dict[str, Any] | None = None
    """Flags of the engine."""

    @property
    def effective_replicas(self) -> int:
        """`replicas`; a worker that serves has at least one (ruling F18)."""
        return max(self.replicas or 0, 1 if self.type.serves else 0)

    @property
    def effective_pods(self) -> int:
        """`pods`; a worker that serves has at least one (ruling F18)."""
        return max(self.pods or 0, 1 if self.type.serves else 0)


class LoraAdapter(ResourcePart):
    """An adapter that is served beside the model, under a name of its own."""

    name: str = Field(pattern=_NAME_PATTERN)
    """The name clients use."""
    artifact_url: ModelURI = Field(alias="artifactURL")
    """Where the adapter is: hf://, s3://, pvc://, obs:// or ms://."""


class Backend(ResourcePart):
    """One way of serving the model."""

    name: str = Field(pattern=_NAME_PATTERN)
    """Name of the backend; part of the names of what is derived from it."""
    type: BackendType
    model_uri: ModelURI = Field(alias="modelURI")
    """Where the weights are: hf://, s3://, pvc://, obs:// or ms://."""
    cache_uri: str | None = Field(default=None, alias="cacheURI", pattern="^(hostpath|pvc)://.+")
    """Where the weights are kept: hostpath://<path> or pvc://<claim>."""
    env_from: list[dict[str, Any]] = Field(default_factory=list)
    """Sources of the environment, as core/v1 has them."""
    env: list[dict[str, Any]] = Field(default_factory=list)
    """Environment of the engines, as core/v1 has it; names are unique."""
    min_replicas: Replicas | None = None
    """With `maxReplicas`, v0.1.0's form; required unless `replicas` is given."""
    max_replicas: MaxReplicas | None = None
    """The most replicas."""
    replicas: Replicas | None = None
    """v1.0.0's form."""
    scaling_cost: Count = 0
    """What one replica costs, in a unit that all backends share."""
    route_weight: Annotated[Integer, Field(ge=0, le=100)] = 100
    """Share of the requests."""
    scale_to_zero_grace_period: Duration | None = None
    """How long the last replica stays without load, at most 30m."""
    workers: list[Worker] = Field(min_length=1, max_length=1000)
    """Kinds of pods: one server, or prefill and decode."""
    lora_adapters: list[LoraAdapter] = Field(default_factory=list)
    """Adapters served beside the model; names are unique."""
    autoscaling_policy: PolicyBody | None = None
    scheduler_name: str | None = None
    """The scheduler of the pods."""
    runtime_class_name: str | None = None
    """The runtime class of the pods."""

    @property
    def bounds(self) -> tuple[int, int]:
        """(least, most) replicas; without bounds both are `replicas`."""
        fixed = self.replicas if self.replicas is not None else 1
        least = self.min_replicas if self.min_replicas is not None else fixed
        most = self.max_replicas if self.max_replicas is not None else max(least, fixed)
        return least, most

    @property
    def scale_to_zero_grace_period_ms(self) -> int | None:
        """`scaleToZeroGracePeriod` in milliseconds; None when absent."""
        grace = self.scale_to_zero_grace_period
        return None if grace is None else parse_duration_ms(grace)


class ModelBoosterSpec(ResourcePart):
    """A model, its backends, and how they are scaled and reached."""

    name: str | None = Field(default=None, max_length=64, pattern=_NAME_PATTERN)
    """Read from v1.0.0 on: the name clients use."""
    owner: str | None = None
    """`owned_by` of the model (ruling "owner")."""
    backends: list[Backend] = Field(default_factory=list)
    """v0.1.0's form; names are unique."""
    backend: Backend | None = None
    """v0.2.0's form."""
    autoscaling_policy: PolicyBody | None = None
    """Scales all backends together, the cheapest first."""
    cost_expansion_rate_percent: Annotated[Integer, Field(ge=0, le=1000)] | None = None
    """What a stable mix may cost above the cheapest, percent of the cost of switching."""
    model_match: ModelMatch | None = None


class ModelBooster(Resource):
    """A model to be served."""

    spec: ModelBoosterSpec
