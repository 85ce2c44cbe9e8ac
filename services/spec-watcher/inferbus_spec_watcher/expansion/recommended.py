"""Recommended configurations of a BackendRuntime: which one counts, and what is made of it.

Invariant: an argument is either rendered completely or not at all; what a Playground writes itself
is never touched (llmaz spec 2.2, 2.3).
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from inferbus_contracts.errors import ErrorCode, Problem
from inferbus_contracts.resources.backend_runtime import (
    BackendRuntime,
    RecommendedConfig,
    ResourceAmounts,
)
from inferbus_contracts.resources.scalars import parse_quantity
from inferbus_spec_watcher.expansion.conditions import BlockedError, Obstacle
from inferbus_spec_watcher.expansion.model_sources import ClaimedModel

DEFAULT_CONFIG = "default"
SPECULATIVE_CONFIG = "speculative-decoding"

_VARIABLE = re.compile(r"\{\{[^\S\n]*\.(\w+)[^\S\n]*\}\}")
_RAISED = ("cpu", "memory")


def chosen_config(
    runtime: BackendRuntime, name: str | None, *, speculative: bool
) -> RecommendedConfig:
    """The configuration by name, or the one that fits the claim.

    A runtime that recommends nothing needs no configuration. Raises `BlockedError` when there is
    none of that name.
    """
    configs = {config.name: config for config in runtime.spec.recommended_configs}
    wanted = name or (SPECULATIVE_CONFIG if speculative else DEFAULT_CONFIG)
    if wanted in configs:
        return configs[wanted]
    if not configs and not name and not speculative:
        return RecommendedConfig(name=wanted)
    raise BlockedError(
        Obstacle.CONFIG_MISSING,
        Problem(
            code=ErrorCode.MISSING_REFERENCE,
            message=f"the BackendRuntime {runtime.metadata.name!r} has no such configuration",
            field="spec.backendRuntimeConfig.configName",
            value=wanted,
            remedy=f"use one of {', '.join(sorted(configs)) or 'none'}, or another backendName",
        ),
    )


def template_variables(models: Sequence[ClaimedModel], *, skips_loader: bool) -> dict[str, str]:
    """What arguments may be made from; `models` holds the main one first, and at least that."""
    paths = [model.path(skips_loader=skips_loader) for model in models]
    variables = {"ModelPath": paths[0], "ModelName": models[0].name}
    return variables | ({"DraftModelPath": paths[1]} if len(paths) > 1 else {})


def rendered_args(args: Sequence[str], variables: Mapping[str, str]) -> list[str]:
    """The arguments with variables filled in; raises `BlockedError` for one without a value."""

    def value(match: re.Match[str]) -> str:
        found = variables.get(match[1])
        if not found:
            raise BlockedError(
                Obstacle.ARGUMENTS_UNRENDERABLE,
                Problem(
                    code=ErrorCode.RULE_BROKEN,
                    message=f"nothing fills in the variable {match[1]!r} of an argument",
                    field="spec.recommendedConfigs",
                    value=match.string,
                    remedy=f"use one of {', '.join(sorted(variables))}, or another configName",
                ),
            )
        return found

    return [_VARIABLE.sub(value, arg) for arg in args]


def merged_resources(
    recommended: ResourceAmounts | None, own: ResourceAmounts | None
) -> dict[str, Any]:
    """core/v1 ResourceRequirements: for each resource the user's amount, else the recommended.

    A limit of cpu or memory below its request, or absent beside one, is raised to it; where the
    user says nothing, what is recommended counts as it is.
    """
    if own is None:
        return recommended.to_dict() if recommended is not None else {}
    base = recommended if recommended is not None else ResourceAmounts()
    requests = {**base.requests, **own.requests}
    limits = {**base.limits, **own.limits}
    for name in _RAISED:
        request, limit = requests.get(name), limits.get(name)
        if request is not None and (
            limit is None or parse_quantity(request) > parse_quantity(limit)
        ):
            limits[name] = request
    parts = {"requests": requests, "limits": limits}
    return {name: amounts for name, amounts in parts.items() if amounts}
