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
    requests: dict[str, Quantity] = Field(default_factory=dict)


class HPATrigger(ResourcePart):
    """Metrics and behaviour of autoscaling/v2, passed through."""

    metrics: list[dict[str, Any]] = Field(default_factory=list)
    behavior: dict[str, Any] | None = None


class ScaleTrigger(ResourcePart):
    """What makes replicas follow load."""

    hpa: HPATrigger | None = None


class RecommendedConfig(ResourcePart):
    """Settings under a name that Playgrounds can choose."""

    name: str
    args: list[str] = Field(default_factory=list)
    """Templates: `{{ .ModelPath }}`, `{{ .ModelName }}`, `{{ .DraftModelPath }}` are filled in."""
    resources: ResourceAmounts | None = None
    shared_memory_size: Quantity | None = None
    scale_trigger: ScaleTrigger | None = None


class BackendRuntimeSpec(ResourcePart):
    """An engine."""

    command: list[str] = Field(default_factory=list)
    image: str
    version: str
    """Tag of the image."""
    envs: list[dict[str, Any]] = Field(default_factory=list)
    lifecycle: dict[str, Any] | None = None
    liveness_probe: dict[str, Any] | None = None
    readiness_probe: dict[str, Any] | None = None
    startup_probe: dict[str, Any] | None = None
    recommended_configs: list[RecommendedConfig] = Field(default_factory=list)


class BackendRuntime(Resource):
    """An engine that Playgrounds can choose; cluster-scoped."""

    spec: BackendRuntimeSpec
