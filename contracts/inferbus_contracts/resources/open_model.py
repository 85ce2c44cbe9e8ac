"""OpenModel: where a model's weights come from and which accelerators can run it.

Invariant: `parse_model_uri` is the only reading of a `uri`, for admission, paths and loaders alike
(llmaz spec 1.1, 3.1; defect S6).
"""

from dataclasses import dataclass
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


class UriScheme(StrEnum):
    """The kinds of places a `uri` can name."""

    OSS = "oss"
    S3 = "s3"
    GCS = "gcs"
    OLLAMA = "ollama"
    HOST = "host"


_SCHEME_ALIASES = {"gs": UriScheme.GCS}


@dataclass(frozen=True, kw_only=True)
class ModelAddress:
    """A parsed `uri`; parts that its scheme doesn't have are empty."""

    scheme: UriScheme
    bucket: str = ""
    endpoint: str = ""
    """Host of the object store (oss)."""
    path: str = ""
    """Key prefix without slashes at its ends, absolute path (host) or tag (ollama)."""


def parse_model_uri(uri: str) -> ModelAddress:
    """The place that a `uri` names; the scheme's case doesn't matter.

    oss: `<bucket>.<endpoint>/<path>`, s3 and gcs (or gs): `<bucket>/<path>`, ollama: `<tag>`, host:
    an absolute path. Raises `ValueError` saying what is wrong.
    """
    name, separator, address = uri.partition("://")
    if not separator or "://" in address:
        raise ValueError("should be <scheme>://<address> with exactly one ://")
    scheme = _scheme(name.lower())
    if scheme is UriScheme.OLLAMA:
        if not address:
            raise ValueError("ollama:// should be followed by a model tag")
        return ModelAddress(scheme=scheme, path=address)
    if scheme is UriScheme.HOST:
        if not address.startswith("/"):
            raise ValueError(
                "host:// should be followed by an absolute path, e.g. host:///models/m"
            )
        return ModelAddress(scheme=scheme, path=address)
    return _object_store(scheme, address)


def _scheme(name: str) -> UriScheme:
    if name in _SCHEME_ALIASES:
        return _SCHEME_ALIASES[name]
    if name not in set(UriScheme):
        known = ", ".join(sorted({*UriScheme, *_SCHEME_ALIASES}))
        raise ValueError(f"scheme {name!r} is not one of {known}")
    return UriScheme(name)


def _object_store(scheme: UriScheme, address: str) -> ModelAddress:
    host, _, path = address.partition("/")
    path = path.strip("/")
    bucket, dot, endpoint = host.partition(".") if scheme is UriScheme.OSS else (host, "", "")
    if scheme is UriScheme.OSS and not (dot and endpoint):
        raise ValueError("should be oss://<bucket>.<endpoint>/<path>")
    if not bucket or not path:
        raise ValueError(f"should be {scheme}://<bucket>/<path>, with neither part empty")
    return ModelAddress(scheme=scheme, bucket=bucket, endpoint=endpoint, path=path)


class ModelHub(ResourcePart):
    """A model on a hub."""

    name: ModelHubName = ModelHubName.HUGGINGFACE
    model_id: str | None = Field(default=None, alias="modelID")
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


class Flavor(ResourcePart):
    """One kind of accelerator that can run the model."""

    name: str
    limits: dict[str, Quantity] = Field(default_factory=dict)
    """What one pod needs of it."""
    node_selector: dict[str, str] = Field(default_factory=dict)
    params: dict[str, str] = Field(default_factory=dict)
    """E.g. TP, PP and INSTANCE-TYPE."""


class InferenceConfig(ResourcePart):
    """How the model can be run."""

    flavors: list[Flavor] = Field(default_factory=list, max_length=8)
    """In order of preference."""


class OpenModelSpec(ResourcePart):
    """A model."""

    family_name: str
    source: ModelSource
    inference_config: InferenceConfig | None = None
    owned_by: str = "llmaz"
    created_at: str | None = None
    """RFC 3339; the spec-watcher sets it when it is absent (ruling 6 of precedence)."""


class OpenModel(Resource):
    """A model that Playgrounds can claim; cluster-scoped."""

    spec: OpenModelSpec
