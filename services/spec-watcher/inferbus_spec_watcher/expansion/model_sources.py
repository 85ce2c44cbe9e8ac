"""Where an OpenModel's weights come from, and where a pod finds them.

Renderer and loader must agree on the place, so it is computed here alone (defect LZ_S4). Invariant:
two models of one claim never share a folder that either of them is loaded into (defect LZ_S7).
(llmaz spec 3.1, 3.2)
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from inferbus_contracts.artifacts import ModelUri, Scheme, parse_model_uri
from inferbus_contracts.resources.open_model import ModelHub, ModelHubName, OpenModel

MODELS_FOLDER = "/workspace/models"
_WEIGHT_FILE = ".gguf"


@dataclass(frozen=True, kw_only=True)
class ClaimedModel:
    """One model of a claim; the main one has index 0."""

    model: OpenModel
    index: int
    subfolder: str = ""
    """Below the models' folder; set where models would get in each other's way."""

    @property
    def hub(self) -> ModelHub | None:
        """The hub, which counts before a URI."""
        return self.model.spec.source.model_hub

    @property
    def uri(self) -> str:
        """The URI as it is written; empty beside a hub."""
        return "" if self.hub is not None else self.model.spec.source.uri or ""

    @property
    def scheme(self) -> Scheme:
        """What kind of source it is."""
        if self.hub is None:
            return self._parsed.scheme
        return Scheme.MS if self.hub.name is ModelHubName.MODEL_SCOPE else Scheme.HF

    @property
    def address(self) -> str:
        """What follows the scheme: a hub's repository, or the rest of the URI."""
        return self._parsed.address if self.hub is None else self.hub.model_id or ""

    @property
    def _parsed(self) -> ModelUri:
        return parse_model_uri(self.uri)

    @property
    def host_path(self) -> str | None:
        """The path on the node, for models that are there already."""
        return self.address if self.scheme is Scheme.HOST else None

    @property
    def loaded(self) -> bool:
        """Whether a loader fetches it, rather than the node having it or the engine pulling it."""
        return self.scheme not in (Scheme.HOST, Scheme.OLLAMA)

    @property
    def file(self) -> str | None:
        """The one file that the model consists of; None when it is a folder."""
        if self.hub is not None:
            return self.hub.filename
        last = self.address.rpartition("/")[2]
        return last if _WEIGHT_FILE in last.lower() else None

    @property
    def folder(self) -> str:
        """The folder, below the models' folder, that the loader fills."""
        if self.file is not None:
            return ""
        if self.hub is not None:
            return f"models--{self.address.replace('/', '--')}"
        return f"models--{self.address.rpartition('/')[2]}"

    def path(self, *, skips_loader: bool) -> str:
        """What the engine is told to open: a path, or what it can fetch itself."""
        if self.host_path is not None:
            return self.host_path
        if skips_loader:
            return self.address if self.hub is not None else self.uri
        place = self.file or self.folder
        return "/".join(part for part in (MODELS_FOLDER, self.subfolder, place) if part)

    @property
    def name(self) -> str:
        """What the engine may call it: the model's name, or ollama's tag."""
        return self.address if self.scheme is Scheme.OLLAMA else self.model.metadata.name


def claimed(models: Sequence[OpenModel]) -> list[ClaimedModel]:
    """Models, the main one first, apart where one would be loaded into or above another's folder.

    A single file is loaded into the models' folder itself.
    """
    result: list[ClaimedModel] = []
    for index, model in enumerate(models):
        one = ClaimedModel(model=model, index=index)
        if any(_clash(one, other) for other in result):
            one = replace(one, subfolder=model.metadata.name)
        result.append(one)
    return result


def _clash(one: ClaimedModel, other: ClaimedModel) -> bool:
    """Whether both are loaded, and below the models' folder itself, into nested folders."""
    if not (one.loaded and other.loaded) or other.subfolder:
        return False
    return one.folder == other.folder or not (one.folder and other.folder)
