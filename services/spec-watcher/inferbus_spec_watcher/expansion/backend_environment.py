"""Environment of a ModelBooster's containers, and what it says about the sidecar.

Invariant: a variable of the user wins over the platform's of the same name, and stands once
(modelbooster spec 1.2, 2.8, 7.3).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from inferbus_contracts.resources.booster import Backend, WorkerType
from inferbus_contracts.resources.networking import InferenceEngine
from inferbus_spec_watcher.expansion.backend_plan import BackendPlan
from inferbus_spec_watcher.expansion.conditions import Doubt
from inferbus_spec_watcher.expansion.context import Context
from inferbus_spec_watcher.expansion.engine_flags import is_port
from inferbus_spec_watcher.expansion.environment import (
    from_config_map,
    from_field,
    from_secret,
    literal,
    without_repeats,
)

DEFAULT_RUNTIME_PORT = 8100
DEFAULT_METRICS_PATH = "/metrics"
RUNTIME_PORT = "RUNTIME_PORT"
RUNTIME_URL = "RUNTIME_URL"
RUNTIME_METRICS_PATH = "RUNTIME_METRICS_PATH"

_OFFLINE = literal("HF_HUB_OFFLINE", "1")
_ROLE_VARIABLES: Mapping[WorkerType, tuple[dict[str, Any], ...]] = {
    WorkerType.PREFILL: (from_field("HCCL_IF_IP", "status.podIP"),),
    WorkerType.DECODE: (
        literal("GLOO_SOCKET_IFNAME", "eth0"),
        literal("TP_SOCKET_IFNAME", "eth0"),
        literal("HCCL_SOCKET_IFNAME", "eth0"),
    ),
}


@dataclass(frozen=True, kw_only=True)
class Sidecar:
    """How the sidecar is reached, and how it reaches the engine."""

    port: int
    engine_url: str
    engine_metrics_path: str
    page: str
    """Path of the page that policies read; a reference can't be read, so it counts as absent."""


def sidecar_of(plan: BackendPlan, context: Context) -> Sidecar:
    """What the backend's environment says about the sidecar.

    A text may come from a reference, which the container then resolves itself; a port can't.
    """
    backend = plan.backend
    return Sidecar(
        port=_port(plan, context),
        engine_url=_text(backend, RUNTIME_URL) or f"http://localhost:{plan.port}",
        engine_metrics_path=_text(backend, RUNTIME_METRICS_PATH) or DEFAULT_METRICS_PATH,
        page=_literal(backend, RUNTIME_METRICS_PATH) or DEFAULT_METRICS_PATH,
    )


def sidecar_variables(plan: BackendPlan, worker: WorkerType) -> list[dict[str, Any]]:
    """Of the sidecar: like the engine's, and it may reach the hub, for adapters (MB_7_1_3)."""
    return without_repeats(plan.backend.env, _standard(plan), _ROLE_VARIABLES.get(worker, ()))


def engine_variables(plan: BackendPlan, worker: WorkerType) -> list[dict[str, Any]]:
    """Of the engine: the user's, then the standard ones, then those of prefill or decode."""
    own = _ROLE_VARIABLES.get(worker, ())
    offline = (_OFFLINE,) if own else ()
    return without_repeats(plan.backend.env, _standard(plan), offline, own)


def _standard(plan: BackendPlan) -> list[dict[str, Any]]:
    vllm = [literal("VLLM_USE_V1", "1")] if plan.engine is InferenceEngine.VLLM else []
    return [
        from_field("POD_NAME", "metadata.name"),
        from_field("NAMESPACE", "metadata.namespace"),
        *vllm,
        from_config_map("REDIS_HOST", "redis-config", "REDIS_HOST"),
        from_config_map("REDIS_PORT", "redis-config", "REDIS_PORT"),
        from_secret("REDIS_PASSWORD", "redis-secret", "REDIS_PASSWORD"),
    ]


def _variable(backend: Backend, name: str) -> dict[str, Any] | None:
    return next((one for one in backend.env if one.get("name") == name), None)


def _text(backend: Backend, name: str) -> str:
    variable = _variable(backend, name) or {}
    return f"$({name})" if variable.get("valueFrom") else _literal(backend, name)


def _literal(backend: Backend, name: str) -> str:
    return str((_variable(backend, name) or {}).get("value") or "")


def _port(plan: BackendPlan, context: Context) -> int:
    variable = _variable(plan.backend, RUNTIME_PORT)
    if variable is None:
        return DEFAULT_RUNTIME_PORT
    text = _literal(plan.backend, RUNTIME_PORT)
    if is_port(text):
        return int(text)
    context.doubt(
        Doubt.SETTING_UNREADABLE,
        f"{plan.path}.env[{plan.backend.env.index(variable)}].value",
        f"{RUNTIME_PORT} is no port, so {DEFAULT_RUNTIME_PORT} counts",
        "write a port, 1 to 65535, as its value",
        value=text or None,
    )
    return DEFAULT_RUNTIME_PORT
