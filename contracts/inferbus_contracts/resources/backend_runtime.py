"""BackendRuntime: how one engine is run, with recommended settings.

Invariant: probes, lifecycle and environment pass through to the pod untouched (llmaz spec 1.5).
"""

from typing import Any

from pydantic import Field

from inferbus_contracts.resources.document import ResourcePart
from inferbus_contracts.resources.metadata import Resource
from inferbus_contracts.resources.scalars import Quantity


class ResourceAmounts(ResourcePart):
    """What a container asks for and may use."""

    limits: dict[str, Quantity] = Field(default_factory=dict)
    """The most that is used, by resource."""
    requests: dict[str, Quantity] = Field(default_factory=dict)
    """What has to be free, by resource; at most the limits."""


class HPATrigger(ResourcePart):
    """Metrics and behaviour of autoscaling/v2, passed through."""

    metrics: list[dict[str, Any]] = Field(default_factory=list)
    """Metrics of autoscaling/v2."""
    behavior: dict[str, Any] | None = None
    """Behaviour of autoscaling/v2."""


class ScaleTrigger(ResourcePart):
    """What makes replicas follow load."""

    hpa: HPATrigger | None = None


class RecommendedConfig(ResourcePart):
    """Settings under a name that Playgrounds can choose."""

    name: str
    """What Playgrounds choose it by."""
    args: list[str] = Field(default_factory=list)
    """Templates: `{{ .ModelPath }}`, `{{ .ModelName }}`, `{{ .DraftModelPath }}` are filled in."""
    resources: ResourceAmounts | None = None
    shared_memory_size: Quantity | None = None
    """Size of the shared memory of a pod."""
    scale_trigger: ScaleTrigger | None = None


class BackendRuntimeSpec(ResourcePart):
    """An engine."""

    command: list[str] = Field(default_factory=list)
    """Command of the engine's container."""
    image: str
    """Image of the engine, without its tag."""
    version: str
    """Tag of the image."""
    envs: list[dict[str, Any]] = Field(default_factory=list)
    """Environment of the engine's container, as core/v1 has it."""
    lifecycle: dict[str, Any] | None = None
    """Hooks of the container, as core/v1 has them."""
    liveness_probe: dict[str, Any] | None = None
    """Probe of core/v1; a container that fails it is restarted."""
    readiness_probe: dict[str, Any] | None = None
    """Probe of core/v1; a pod that fails it gets no requests."""
    startup_probe: dict[str, Any] | None = None
    """Probe of core/v1; until it succeeds the others wait."""
    recommended_configs: list[RecommendedConfig] = Field(default_factory=list)
    """Settings under names that Playgrounds can choose."""


class BackendRuntime(Resource):
    """An engine that Playgrounds can choose; cluster-scoped."""

    spec: BackendRuntimeSpec
