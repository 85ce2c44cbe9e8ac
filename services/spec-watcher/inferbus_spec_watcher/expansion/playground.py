"""Playground: an inference Service, and a HorizontalPodAutoscaler where it has a trigger.

Invariant: the pod is the runtime's, with what the Playground says otherwise; nothing of the claimed
models but their places and names is in it (llmaz spec 2.1, 5.1).
"""

from typing import Any

from inferbus_contracts.errors import ErrorCode, Problem
from inferbus_contracts.resources.annotations import ENGINE
from inferbus_contracts.resources.backend_runtime import BackendRuntime, RecommendedConfig
from inferbus_contracts.resources.inference import (
    MODEL_RUNNER,
    BackendRuntimeConfig,
    Playground,
)
from inferbus_contracts.resources.kinds import (
    BACKEND_RUNTIME,
    INFERENCE_SERVICE,
)
from inferbus_spec_watcher.builtin import BUILT_IN_RUNTIMES
from inferbus_spec_watcher.expansion.claims import (
    SKIP_LOADER,
    claimed_models,
    claims_of,
    has_draft,
    skips_loader,
)
from inferbus_spec_watcher.expansion.conditions import BlockedError, Doubt, Obstacle
from inferbus_spec_watcher.expansion.context import Context, typed
from inferbus_spec_watcher.expansion.engines import engine_of_runtime
from inferbus_spec_watcher.expansion.environment import overridden
from inferbus_spec_watcher.expansion.horizontal_scaling import autoscaler
from inferbus_spec_watcher.expansion.manifests import manifest, present
from inferbus_spec_watcher.expansion.model_sources import ClaimedModel
from inferbus_spec_watcher.expansion.recommended import (
    chosen_config,
    merged_resources,
    rendered_args,
    template_variables,
)

TERMINATION_GRACE_SECONDS = 130
PORT = 8080
_SHELLS = frozenset({"sh", "bash", "/bin/sh", "/bin/bash"})


def playground_children(playground: Playground, context: Context) -> list[dict[str, Any]]:
    """The children of a Playground; raises `BlockedError` while what it refers to is missing."""
    claims = claims_of(playground)
    models = claimed_models(claims, context)
    runtime = _runtime(playground, context)
    own = playground.spec.backend_runtime_config or BackendRuntimeConfig()
    config = chosen_config(runtime, own.config_name, speculative=has_draft(claims))
    trigger = config.scale_trigger.hpa if config.scale_trigger is not None else None
    _warn_of_unread(own, runtime, models, context)
    spec = {
        "modelClaims": claims.to_dict(),
        "replicas": playground.spec.replicas,
        "rolloutStrategy": {"type": "RollingUpdate"},
        "workloadTemplate": {
            "workerTemplate": {"spec": _pod_spec(runtime, own, config, models, context)}
        },
    }
    annotations = _service_annotations(runtime, context)
    service = manifest(context, INFERENCE_SERVICE, context.key.name, spec, annotations=annotations)
    return [service, *autoscaler(playground.spec.elastic_config, trigger, context)]


def _runtime(playground: Playground, context: Context) -> BackendRuntime:
    name = playground.backend_name
    stored = context.resource(BackendRuntime, BACKEND_RUNTIME, name)
    if stored is not None:
        return stored
    if name in BUILT_IN_RUNTIMES:
        return typed(BackendRuntime, BUILT_IN_RUNTIMES[name])
    raise BlockedError(
        Obstacle.RUNTIME_MISSING,
        Problem(
            code=ErrorCode.MISSING_REFERENCE,
            message="there is no such BackendRuntime",
            object=str(context.key),
            field="spec.backendRuntimeConfig.backendName",
            value=name,
            remedy=f"create it, or use one of {', '.join(sorted(BUILT_IN_RUNTIMES))}",
        ),
    )


def _service_annotations(runtime: BackendRuntime, context: Context) -> dict[str, str]:
    skip = context.annotations.get(SKIP_LOADER)
    engine = engine_of_runtime(runtime)
    return present(**{SKIP_LOADER: skip, ENGINE: engine and engine.value})


def _pod_spec(
    runtime: BackendRuntime,
    own: BackendRuntimeConfig,
    config: RecommendedConfig,
    models: list[ClaimedModel],
    context: Context,
) -> dict[str, Any]:
    size = own.shared_memory_size or config.shared_memory_size
    variables = template_variables(models, skips_loader=skips_loader(context))
    engine = runtime.spec
    container = present(
        name=MODEL_RUNNER,
        image=f"{engine.image}:{own.version or engine.version}",
        command=engine.command,
        args=[*rendered_args(config.args, variables), *own.args],
        env=overridden(engine.envs, own.envs),
        ports=[{"name": "http", "protocol": "TCP", "containerPort": PORT}],
        resources=merged_resources(config.resources, own.resources),
        lifecycle=engine.lifecycle,
        livenessProbe=engine.liveness_probe,
        readinessProbe=engine.readiness_probe,
        startupProbe=engine.startup_probe,
        volumeMounts=[{"name": "dshm", "mountPath": "/dev/shm"}] if size else [],
    )
    shared = {"name": "dshm", "emptyDir": {"medium": "Memory", "sizeLimit": size}}
    return present(
        terminationGracePeriodSeconds=TERMINATION_GRACE_SECONDS,
        containers=[container],
        volumes=[shared] if size else [],
    )


def _warn_of_unread(
    own: BackendRuntimeConfig, runtime: BackendRuntime, models: list[ClaimedModel], context: Context
) -> None:
    command = runtime.spec.command
    if own.args and command[:1] and command[0] in _SHELLS and "-c" in command:
        context.doubt(
            Doubt.ARGUMENTS_INERT,
            "spec.backendRuntimeConfig.args",
            "the runtime runs a shell script, which doesn't read arguments",
            "remove them, or use a BackendRuntime without a shell",
            value=" ".join(own.args),
        )
    for one in models if skips_loader(context) else ():
        if one.hub is not None and one.hub.filename is not None:
            context.doubt(
                Doubt.ARGUMENTS_INERT,
                f"metadata.annotations[{SKIP_LOADER}]",
                f"the engine is told {one.hub.model_id}, and not which file of it",
                "name the file in backendRuntimeConfig.args, or remove the annotation",
                value=one.hub.filename,
            )
