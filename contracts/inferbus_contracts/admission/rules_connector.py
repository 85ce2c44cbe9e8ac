"""Rules about how prefill hands its key-value cache to decode (modelbooster spec 2.6, rule 14)."""

import json
from collections.abc import Iterator
from typing import Any

from inferbus_contracts.admission.backends import backends_of, workers_of
from inferbus_contracts.admission.paths import child
from inferbus_contracts.admission.rule import Finding, Rule, error, warning
from inferbus_contracts.errors import ErrorCode
from inferbus_contracts.resources.booster import BackendType, ModelBooster, Worker, WorkerType

CONNECTOR_TYPES = {
    "MooncakeConnectorV1": "mooncake",
    "MooncakeConnector": "mooncake",
    "NixlConnector": "nixl",
    "LMCacheConnectorV1": "lmcache",
}
"""The ModelServer's connector type for each of vLLM's."""

_ROLES = {
    WorkerType.PREFILL: ("kv_producer", "kv_both"),
    WorkerType.DECODE: ("kv_consumer", "kv_both"),
}


def transfer_config(worker: Worker) -> tuple[str, dict[str, Any]]:
    """(key, content) of `kv-transfer-config`, ("", {}) when absent.

    The key may be written with `_`, and the content as JSON text or as a mapping. Raises
    `ValueError` when it is neither.
    """
    for key, value in (worker.config or {}).items():
        if key.replace("_", "-") == "kv-transfer-config":
            content = json.loads(value) if isinstance(value, str) else value
            if not isinstance(content, dict):
                raise ValueError("should hold a JSON mapping")
            return key, content
    return "", {}


def _readable(resource: ModelBooster) -> Iterator[tuple[str, Worker, dict[str, Any]]]:
    """Prefill and decode workers that name a connector, with its configuration."""
    for path, backend, worker in workers_of(resource):
        if backend.type is not BackendType.VLLM_DISAGGREGATED or worker.type not in _ROLES:
            continue
        try:
            key, content = transfer_config(worker)
        except ValueError:
            continue
        if isinstance(content.get("kv_connector"), str):
            yield child(f"{path}.config", key), worker, content


def transfer_parses(resource: ModelBooster) -> Iterator[Finding]:
    """The engine refuses what isn't JSON."""
    for path, _, worker in workers_of(resource):
        try:
            transfer_config(worker)
        except ValueError as wrong:
            yield Finding(
                code=ErrorCode.WRONG_TYPE,
                field=f"{path}.config",
                message=f"kv-transfer-config is no JSON mapping: {wrong}",
                remedy="write it as JSON text in single quotes",
            )


def connector_known(resource: ModelBooster) -> Iterator[Finding]:
    """The router knows how to follow some connectors."""
    for field, _, content in _readable(resource):
        if content["kv_connector"] not in CONNECTOR_TYPES:
            yield Finding(
                code=ErrorCode.UNSUPPORTED,
                field=field,
                message="the router doesn't know this kv_connector, and passes requests on plainly",
                value=content["kv_connector"],
                remedy=f"use one of {', '.join(sorted(CONNECTOR_TYPES))}",
            )


def roles_fit(resource: ModelBooster) -> Iterator[Finding]:
    """Prefill produces and decode consumes."""
    for field, worker, content in _readable(resource):
        roles = _ROLES[worker.type]
        if content.get("kv_role") not in roles:
            yield Finding(
                field=field,
                message=f"kv_role of a {worker.type.value} worker should be {' or '.join(roles)}",
                value=content.get("kv_role"),
                remedy=f"set kv_role to {roles[0]}",
            )


def connectors_agree(resource: ModelBooster) -> Iterator[Finding]:
    """Both sides speak the same way."""
    for path, _ in backends_of(resource):
        spoken = {
            CONNECTOR_TYPES.get(content["kv_connector"], content["kv_connector"])
            for field, _, content in _readable(resource)
            if field.startswith(f"{path}.")
        }
        if len(spoken) > 1:
            yield Finding(
                field=f"{path}.workers",
                message="prefill and decode workers use different kv_connectors",
                value=", ".join(sorted(spoken)),
                remedy="use the same kv_connector on all workers",
            )


def both_sides_connected(resource: ModelBooster) -> Iterator[Finding]:
    """A cache that only one side hands over, or takes, is computed twice."""
    for path, _ in backends_of(resource):
        sides = {
            worker.type for field, worker, _ in _readable(resource) if field.startswith(f"{path}.")
        }
        if len(sides) == 1:
            yield Finding(
                field=f"{path}.workers",
                message=f"only the {next(iter(sides)).value} worker has a kv_connector, so nothing "
                "is handed over",
                remedy="configure kv-transfer-config on prefill and decode workers",
            )


RULES: tuple[Rule, ...] = (
    error("MB-14a", "modelbooster 2.6", "no engine could start", transfer_parses),
    warning("MB-14b", "modelbooster 2.6", "v0.1.0 ignores it", connector_known),
    error("MB-14c", "modelbooster 2.6", "no cache could be handed over", roles_fit),
    error("MB-14d", "modelbooster 2.6", "no cache could be handed over", connectors_agree),
    warning("MB-14e", "modelbooster 2.6", "it works, and does work twice", both_sides_connected),
)
