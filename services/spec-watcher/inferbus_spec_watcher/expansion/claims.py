"""The models that a Playground or an inference Service claims, looked up.

Invariant: the main model comes first; of several the last one claimed (llmaz spec 2.4).
"""

from collections.abc import Sequence

from inferbus_contracts.errors import ErrorCode, Problem
from inferbus_contracts.resources.inference import (
    ModelClaims,
    ModelRef,
    ModelRole,
    Playground,
)
from inferbus_contracts.resources.kinds import OPEN_MODEL
from inferbus_contracts.resources.open_model import OpenModel
from inferbus_spec_watcher.expansion.conditions import BlockedError, Obstacle
from inferbus_spec_watcher.expansion.context import Context
from inferbus_spec_watcher.expansion.manifests import present
from inferbus_spec_watcher.expansion.model_sources import ClaimedModel, claimed

SKIP_LOADER = "llmaz.io/skip-model-loader"


def claims_of(playground: Playground) -> ModelClaims:
    """A Playground's claim in the form of several models (llmaz spec 2.1)."""
    single = playground.spec.model_claim
    if single is None:
        assert playground.spec.model_claims is not None
        return playground.spec.model_claims
    claim = present(models=[{"name": single.model_name}], inferenceFlavors=single.inference_flavors)
    return ModelClaims.model_validate(claim)


def ordered(models: Sequence[ModelRef]) -> list[ModelRef]:
    """Main models, the last one first, then drafts as they are claimed."""
    mains = [model for model in models if model.role is ModelRole.MAIN]
    return [*reversed(mains), *(model for model in models if model.role is ModelRole.DRAFT)]


def has_draft(claims: ModelClaims) -> bool:
    """Whether a model drafts for the main one."""
    return any(model.role is ModelRole.DRAFT for model in claims.models)


def claimed_models(claims: ModelClaims, context: Context) -> list[ClaimedModel]:
    """The claimed models, the main one first; raises `BlockedError` while one is missing."""
    found: list[OpenModel] = []
    missing: list[str] = []
    for reference in ordered(claims.models):
        model = context.resource(OpenModel, OPEN_MODEL, reference.name)
        if model is None:
            missing.append(reference.name)
        else:
            found.append(model)
    if missing:
        raise BlockedError(
            Obstacle.MODEL_MISSING,
            Problem(
                code=ErrorCode.MISSING_REFERENCE,
                message="a claimed OpenModel does not exist",
                object=str(context.key),
                field="spec.modelClaims.models",
                value=", ".join(missing),
                remedy="create it, or correct the name; what runs goes on running",
            ),
        )
    return claimed(found)


def skips_loader(context: Context) -> bool:
    """Whether the engine fetches the model itself."""
    return context.annotations.get(SKIP_LOADER) == "true"
