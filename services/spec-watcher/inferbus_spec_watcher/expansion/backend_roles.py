"""Roles of a ModelBooster's ModelServing, for each type of backend.

Invariant: every role has at least one worker of the backend behind it, and the same labels on all
of its pods (modelbooster spec 2.9, 2.10; rulings SGLang, MindIE).
"""

import json
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from inferbus_contracts.errors import ErrorCode, Problem
from inferbus_contracts.resources.booster import BackendType, Worker, WorkerType
from inferbus_spec_watcher.builtin.drain import SGLANG_GAUGES, VLLM_GAUGES, drain_hook
from inferbus_spec_watcher.expansion.backend_environment import Sidecar, engine_variables
from inferbus_spec_watcher.expansion.backend_plan import BackendPlan
from inferbus_spec_watcher.expansion.backend_pods import (
    Health,
    Images,
    engine_container,
    entry_template,
    helper_container,
    runtime_container,
    worker_template,
)
from inferbus_spec_watcher.expansion.conditions import BlockedError, Obstacle
from inferbus_spec_watcher.expansion.engine_commands import (
    ray_worker_command,
    sglang_command,
    vllm_command,
    worker_pods,
)
from inferbus_spec_watcher.expansion.environment import literal, without_repeats
from inferbus_spec_watcher.expansion.manifests import present

MINDIE_STARTUP_SECONDS = 600
_MINDIE_OWN = frozenset({"port", "command"})


@dataclass(frozen=True, kw_only=True)
class RoleBuilder:
    """What all roles of a backend are built with."""

    plan: BackendPlan
    images: Images
    sidecar: Sidecar
    startup_seconds: int

    def roles(self) -> list[dict[str, Any]]:
        """The roles, in the order in which the API lists them."""
        return _BUILDERS[self.plan.backend.type](self)

    def entry(self, worker: Worker, engine: dict[str, Any]) -> dict[str, Any]:
        """A pod with an engine and the sidecar before it."""
        runtime = runtime_container(self.plan, worker, self.images, self.sidecar)
        return entry_template(self.plan, worker, self.images, [runtime, engine])

    def health(self, worker: Worker) -> Health:
        """How engines with a health page are probed."""
        return Health.http(self.plan.port_of(worker), self.startup_seconds)

    def role(
        self, worker: Worker, entry: dict[str, Any], helper: dict[str, Any] | None
    ) -> dict[str, Any]:
        """A role whose replicas are an entry pod and the helpers it needs."""
        return present(
            name=self.plan.role_of(worker),
            replicas=worker.effective_replicas,
            entryTemplate=entry,
            workerTemplate=helper,
        ) | {"workerReplicas": max(0, worker_pods(self.plan, worker) - 1)}


def _vllm(builder: RoleBuilder) -> list[dict[str, Any]]:
    plan, worker = builder.plan, builder.plan.server
    port = plan.port_of(worker)
    engine = engine_container(
        plan,
        worker,
        "engine",
        command=vllm_command(plan, worker),
        lifecycle=drain_hook(VLLM_GAUGES, port),
        **builder.health(worker).probes,
    )
    ray = helper_container(plan, worker, command=ray_worker_command())
    helper = worker_template(plan, worker, builder.images, ray)
    return [builder.role(worker, builder.entry(worker, engine), helper)]


def _vllm_disaggregated(builder: RoleBuilder) -> list[dict[str, Any]]:
    workers = builder.plan.workers
    return [_vllm_part(builder, workers[kind]) for kind in (WorkerType.PREFILL, WorkerType.DECODE)]


def _vllm_part(builder: RoleBuilder, worker: Worker) -> dict[str, Any]:
    plan = builder.plan
    engine = engine_container(
        plan,
        worker,
        "vllm",
        command=vllm_command(plan, worker),
        imagePullPolicy="IfNotPresent",
        lifecycle=drain_hook(VLLM_GAUGES, plan.port_of(worker)),
        **builder.health(worker).probes,
    )
    return builder.role(worker, builder.entry(worker, engine), {"spec": {"containers": []}})


def _sglang(builder: RoleBuilder) -> list[dict[str, Any]]:
    plan, worker = builder.plan, builder.plan.server
    command = sglang_command(plan, worker)
    engine = engine_container(
        plan,
        worker,
        "engine",
        command=command,
        lifecycle=drain_hook(SGLANG_GAUGES, plan.port_of(worker)),
        **builder.health(worker).probes,
    )
    helper = None
    if worker_pods(plan, worker) > 1:
        variables = engine_variables(plan, worker.type)
        container = helper_container(plan, worker, command=command, env=variables)
        helper = worker_template(plan, worker, builder.images, container)
    return [builder.role(worker, builder.entry(worker, engine), helper)]


def _mindie(builder: RoleBuilder) -> list[dict[str, Any]]:
    return [_mindie_part(builder, worker) for worker in builder.plan.workers.values()]


def _mindie_part(builder: RoleBuilder, worker: Worker) -> dict[str, Any]:
    """The image's own entry point; no sidecar, which doesn't know the engine (ruling MindIE)."""
    plan = builder.plan
    health = Health.tcp(plan.port_of(worker), MINDIE_STARTUP_SECONDS)
    fields = present(command=_mindie_command(plan, worker), env=_mindie_variables(plan, worker))
    engine = engine_container(plan, worker, "engine", **fields, **health.probes)
    helper = None
    if worker_pods(plan, worker) > 1:
        container = helper_container(plan, worker, **fields)
        helper = worker_template(plan, worker, builder.images, container)
    entry = entry_template(plan, worker, builder.images, [engine])
    return builder.role(worker, entry, helper)


def _mindie_command(plan: BackendPlan, worker: Worker) -> list[str]:
    """Words as they are, or a text split as a shell would."""
    given = (worker.config or {}).get("command")
    try:
        return shlex.split(given) if isinstance(given, str) else [str(word) for word in given or ()]
    except (TypeError, ValueError) as wrong:
        index = plan.backend.workers.index(worker)
        problem = Problem(
            code=ErrorCode.WRONG_TYPE,
            message=f"is no command: {wrong}",
            field=f"{plan.path}.workers[{index}].config.command",
            value=given,
            remedy="write it as a list of words",
        )
        raise BlockedError(Obstacle.INVALID, problem) from None


def _mindie_variables(plan: BackendPlan, worker: Worker) -> list[dict[str, Any]]:
    """Every other key of the configuration, and where the model lies and what it is called."""
    config = worker.config or {}
    given = [
        literal(key, value if isinstance(value, str) else json.dumps(value))
        for key, value in sorted(config.items())
        if key not in _MINDIE_OWN and value is not None
    ]
    platform = [literal("MODEL_PATH", plan.model_path), literal("MODEL_NAME", plan.served_model)]
    return without_repeats(plan.backend.env, given, engine_variables(plan, worker.type), platform)


_BUILDERS: Mapping[BackendType, Callable[[RoleBuilder], list[dict[str, Any]]]] = {
    BackendType.VLLM: _vllm,
    BackendType.VLLM_DISAGGREGATED: _vllm_disaggregated,
    BackendType.SGLANG: _sglang,
    BackendType.MINDIE: _mindie,
    BackendType.MINDIE_DISAGGREGATED: _mindie,
}
