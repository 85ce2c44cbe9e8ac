"""The tables of rules of Playground, inference Service and BackendRuntime (llmaz spec 1.2 to 1.6).

llmaz's webhooks do run, so what they refuse is refused here too, except where a ruling says
otherwise (rulings F9 to F12). LZ-T numbers are the spec's test cases.
"""

import re
from collections.abc import Iterator

from inferbus_contracts.admission import rules_pods as pods
from inferbus_contracts.admission.paths import child
from inferbus_contracts.admission.repeated import repeated_names
from inferbus_contracts.admission.rule import Finding, Rule, accepted, error, warning
from inferbus_contracts.admission.rules_open_model import name_is_label
from inferbus_contracts.errors import ErrorCode
from inferbus_contracts.resources.backend_runtime import BackendRuntime, ResourceAmounts
from inferbus_contracts.resources.inference import (
    MODEL_RUNNER,
    InferenceService,
    ModelClaims,
    ModelRole,
    Playground,
)
from inferbus_contracts.resources.names import is_dns1035_label, is_dns1123_label
from inferbus_contracts.resources.scalars import parse_quantity

TEMPLATE_VARIABLES = frozenset({"ModelPath", "ModelName", "DraftModelPath"})
"""What arguments of a recommended configuration may be made from (llmaz spec 2.2)."""

_VARIABLE = re.compile(r"\{\{\s*\.(\w+)\s*\}\}")


def one_claim(resource: Playground) -> Iterator[Finding]:
    """A Playground serves something, and says it once."""
    claims = (resource.spec.model_claim, resource.spec.model_claims)
    if sum(claim is not None for claim in claims) != 1:
        yield Finding(
            code=ErrorCode.RULE_BROKEN if all(claims) else ErrorCode.MISSING_FIELD,
            field="spec.modelClaim",
            message="should have exactly one of modelClaim and modelClaims",
            remedy="use modelClaim for one model, modelClaims for several",
        )


def _draft_faults(claims: ModelClaims | None) -> Iterator[Finding]:
    models = claims.models if claims is not None else []
    drafts = sum(model.role is ModelRole.DRAFT for model in models)
    if drafts and (len(models) != 2 or drafts != 1):
        yield Finding(
            field="spec.modelClaims.models",
            message="a draft model needs exactly one main model beside it",
            value=", ".join(f"{model.name} ({model.role.value})" for model in models),
            remedy="claim one model of role main and one of role draft",
        )


def draft_has_main(resource: Playground | InferenceService) -> Iterator[Finding]:
    """Speculative decoding takes two models, one of each role."""
    return _draft_faults(resource.spec.model_claims)


def _several_mains(claims: ModelClaims | None) -> Iterator[Finding]:
    models = claims.models if claims is not None else []
    if len(models) > 1 and all(model.role is ModelRole.MAIN for model in models):
        yield Finding(
            field="spec.modelClaims.models",
            message=f"several models have the role main; {models[-1].name!r} counts",
            value=", ".join(model.name for model in models),
            remedy="keep one model of role main",
        )


def one_main(resource: Playground | InferenceService) -> Iterator[Finding]:
    """One model answers."""
    return _several_mains(resource.spec.model_claims)


def models_nameable(resource: Playground | InferenceService) -> Iterator[Finding]:
    """A claim is of an OpenModel, whose names are DNS labels."""
    spec = resource.spec
    named = {}
    if isinstance(resource, Playground) and resource.spec.model_claim is not None:
        named["spec.modelClaim.modelName"] = resource.spec.model_claim.model_name
    for index, model in enumerate(spec.model_claims.models if spec.model_claims else ()):
        named[f"spec.modelClaims.models[{index}].name"] = model.name
    for field, name in named.items():
        if not is_dns1123_label(name):
            yield Finding(
                code=ErrorCode.BAD_NAME,
                field=field,
                message="no OpenModel can have this name",
                value=name,
                remedy="use the metadata.name of an OpenModel",
            )


def _above_limits(amounts: ResourceAmounts | None, path: str) -> Iterator[Finding]:
    for name, request in (amounts.requests if amounts is not None else {}).items():
        limit = amounts.limits.get(name) if amounts is not None else None
        if limit is not None and parse_quantity(request) > parse_quantity(limit):
            yield Finding(
                field=child(f"{path}.requests", name),
                message=f"is above the limit ({limit})",
                value=request,
                remedy="raise the limit or lower the request",
            )


def requests_within_limits(resource: Playground) -> Iterator[Finding]:
    """A request is at most its limit."""
    config = resource.spec.backend_runtime_config
    resources = config.resources if config is not None else None
    return _above_limits(resources, "spec.backendRuntimeConfig.resources")


def elastic_bounds_ordered(resource: Playground) -> Iterator[Finding]:
    """At least one replica, at most the maximum; equal is fine (rulings F9 to F12)."""
    elastic = resource.spec.elastic_config
    if elastic is None:
        return
    least, most = elastic.min_replicas, elastic.max_replicas
    if least < 1:
        yield Finding(
            code=ErrorCode.VALUE_OUT_OF_RANGE,
            field="spec.elasticConfig.minReplicas",
            message="should be at least 1",
            value=least,
            remedy="write 1 or more",
        )
    if most is not None and least > most:
        yield Finding(
            field="spec.elasticConfig.minReplicas",
            message=f"is above maxReplicas ({most})",
            value=least,
            remedy="make minReplicas at most maxReplicas",
        )


def trigger_says_what(resource: Playground) -> Iterator[Finding]:
    """A trigger has metrics."""
    elastic = resource.spec.elastic_config
    trigger = elastic.scale_trigger if elastic is not None else None
    if trigger is not None and trigger.hpa is None:
        yield _without_hpa("spec.elasticConfig.scaleTrigger")


def _without_hpa(field: str) -> Finding:
    return Finding(
        code=ErrorCode.MISSING_FIELD,
        field=f"{field}.hpa",
        message="the trigger doesn't say what triggers it",
        remedy="add hpa with metrics, or remove scaleTrigger",
    )


def service_name_portable(resource: Playground | InferenceService) -> Iterator[Finding]:
    """A core Service is named after it, with -lb behind."""
    if not is_dns1035_label(f"{resource.metadata.name}-lb"):
        yield Finding(
            code=ErrorCode.BAD_NAME,
            field="metadata.name",
            message="a Service with -lb behind this name can't be made everywhere",
            value=resource.metadata.name,
            remedy="begin with a letter, and use at most 60 characters",
        )


def runner_present(resource: InferenceService) -> Iterator[Finding]:
    """The engine runs in a container of a known name."""
    template = resource.spec.workload_template.worker_template
    yield from _runner(template, "spec.workloadTemplate.workerTemplate")


def leader_runner_present(resource: InferenceService) -> Iterator[Finding]:
    """The leader's engine too; upstream doesn't look."""
    template = resource.spec.workload_template.leader_template
    if template is not None:
        yield from _runner(template, "spec.workloadTemplate.leaderTemplate")


def _runner(template: dict[str, object], path: str) -> Iterator[Finding]:
    spec = template.get("spec")
    containers = pods.containers_of(spec if isinstance(spec, dict) else None)
    if MODEL_RUNNER not in [container.get("name") for container in containers]:
        yield Finding(
            code=ErrorCode.MISSING_FIELD,
            field=f"{path}.spec.containers",
            message=f"no container is called {MODEL_RUNNER}",
            remedy=f"name the engine's container {MODEL_RUNNER}",
        )


def config_names_distinct(resource: BackendRuntime) -> Iterator[Finding]:
    """Configurations are chosen by name."""
    configs = resource.spec.recommended_configs
    named = (
        (f"spec.recommendedConfigs[{index}].name", item.name) for index, item in enumerate(configs)
    )
    return repeated_names(named, "configuration")


def config_requests_within_limits(resource: BackendRuntime) -> Iterator[Finding]:
    """A request is at most its limit."""
    for index, config in enumerate(resource.spec.recommended_configs):
        path = f"spec.recommendedConfigs[{index}].resources"
        yield from _above_limits(config.resources, path)


def config_triggers_say_what(resource: BackendRuntime) -> Iterator[Finding]:
    """A trigger has metrics."""
    for index, config in enumerate(resource.spec.recommended_configs):
        if config.scale_trigger is not None and config.scale_trigger.hpa is None:
            yield _without_hpa(f"spec.recommendedConfigs[{index}].scaleTrigger")


def variables_known(resource: BackendRuntime) -> Iterator[Finding]:
    """Arguments are made from known variables."""
    for index, config in enumerate(resource.spec.recommended_configs):
        for position, argument in enumerate(config.args):
            for name in _VARIABLE.findall(argument):
                if name not in TEMPLATE_VARIABLES:
                    yield Finding(
                        field=f"spec.recommendedConfigs[{index}].args[{position}]",
                        message=f"nothing fills in {name!r}, so the configuration can't be used",
                        value=argument,
                        remedy=f"use one of {', '.join(sorted(TEMPLATE_VARIABLES))}",
                    )


PLAYGROUND_RULES: tuple[Rule, ...] = (
    error("LZ-T18", "llmaz 1.6", "labels and pod names hold it", name_is_label),
    warning("LZ-LB-P", "llmaz 2.4", "it is served without the Service", service_name_portable),
    error("LZ-T12", "llmaz 1.3", "which is meant can't be told", one_claim),
    error("LZ-T13", "llmaz 1.3", "no engine could run it", draft_has_main),
    error("LZ-MAIN-P", "llmaz 1.3", "which of them answers can't be told", one_main),
    error("LZ-CLAIM-P", "llmaz 1.2", "no such model can exist", models_nameable),
    accepted("LZ-T14", "llmaz 8 (T14)", "whether the runtime exists is a condition"),
    error("LZ-T15", "llmaz 1.3", "Kubernetes refuses such pods", requests_within_limits),
    error("LZ-T16", "llmaz 1.3; rulings F9 to F12", "no number fits", elastic_bounds_ordered),
    error("LZ-T17", "llmaz 1.3", "there is nothing to follow", trigger_says_what),
)

SERVICE_RULES: tuple[Rule, ...] = (
    error("LZ-T18S", "llmaz 1.6", "labels and pod names hold it", name_is_label),
    warning("LZ-LB-S", "llmaz 2.4", "it is served without the Service", service_name_portable),
    error("LZ-T20a", "llmaz 1.4", "no engine could run it", draft_has_main),
    warning("LZ-MAIN-S", "llmaz 1.4, 2.4", "upstream takes the last one", one_main),
    error("LZ-CLAIM-S", "llmaz 1.2", "no such model can exist", models_nameable),
    error("LZ-T20b", "llmaz 1.4", "the model has no engine", runner_present),
    warning("LZ-LEADER", "llmaz 1.4", "upstream doesn't look", leader_runner_present),
)

RUNTIME_RULES: tuple[Rule, ...] = (
    error("LZ-T21a", "llmaz 1.5", "which is meant can't be told", config_names_distinct),
    error("LZ-T21b", "llmaz 1.5", "Kubernetes refuses such pods", config_requests_within_limits),
    warning(
        "LZ-HPA", "llmaz 1.5", "upstream accepts it; it triggers nothing", config_triggers_say_what
    ),
    warning("LZ-ARGS", "llmaz 2.2", "only who uses it fails", variables_known),
)
