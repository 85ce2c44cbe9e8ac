"""OpenModel: where a model's weights come from and which accelerators can run it.

Invariant: flavors stand in order of preference, and a hub counts before a `uri` (llmaz spec 1.1).
"""

from enum import StrEnum

from pydantic import Field

from inferbus_contracts.resources.document import ResourcePart
from inferbus_contracts.resources.metadata import Resource
from inferbus_contracts.resources.scalars import Quantity


class ModelHubName(StrEnum):
    """The hubs a model can be loaded from."""

    HUGGINGFACE = "Huggingface"
    MODEL_SCOPE = "ModelScope"

    @property
    def default_revision(self) -> str:
        """The hub's default branch (defect S5: upstream says `main` for both)."""
        return "master" if self is ModelHubName.MODEL_SCOPE else "main"


class ModelHub(ResourcePart):
    """A model on a hub."""

    name: ModelHubName = ModelHubName.HUGGINGFACE
    model_id: str | None = Field(default=None, alias="modelID")
    """Owner and name of the model on the hub."""
    filename: str | None = None
    """One file instead of the whole repository, e.g. a GGUF file."""
    revision: str | None = None
    """Admission fills the hub's default branch."""
    allow_patterns: list[str] | None = None
    """Glob patterns of the files to load."""
    ignore_patterns: list[str] | None = None
    """Glob patterns of the files to leave out."""


class ModelSource(ResourcePart):
    """Where the weights are; the hub counts when both are given."""

    model_hub: ModelHub | None = None
    uri: str | None = None
    """Read by `artifacts.parse_model_uri`."""


class Flavor(ResourcePart):
    """One kind of accelerator that can run the model."""

    name: str
    """What claims choose it by."""
    limits: dict[str, Quantity] = Field(default_factory=dict)
    """What one pod needs of it."""
    node_selector: dict[str, str] = Field(default_factory=dict)
    """Labels of nodes that have the accelerator."""
    params: dict[str, str] = Field(default_factory=dict)
    """E.g. TP, PP and INSTANCE-TYPE."""


class InferenceConfig(ResourcePart):
    """How the model can be run."""

    flavors: list[Flavor] = Field(default_factory=list, max_length=8)
    """In order of preference."""


class OpenModelSpec(ResourcePart):
    """A model."""

    family_name: str
    """The family of the model, e.g. llama3; becomes the value of a label."""
    source: ModelSource
    inference_config: InferenceConfig | None = None
    owned_by: str = "llmaz"
    """Who provides the model, as clients are told."""
    created_at: str | None = None
    """RFC 3339; the spec-watcher sets it when it is absent (ruling 6 of precedence)."""


class OpenModel(Resource):
    """A model that Playgrounds can claim; cluster-scoped."""

    spec: OpenModelSpec
