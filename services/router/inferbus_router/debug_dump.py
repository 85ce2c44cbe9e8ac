"""What the router knows, as the reference's debug endpoint tells it (routing spec 6.7).

Invariant: only reads; every kind of the reference is there, and what the reference keeps to itself
(load, health, caches, limits) stands beside it.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from inferbus_contracts.events.route import EndpointEntry
from inferbus_router.endpoint import Endpoint
from inferbus_router.fleet import ServerState
from inferbus_router.policy_plugins import UNREAD, EngineReading
from inferbus_router.scheduling import Scheduling
from inferbus_router.state import RouterState
from inferbus_router.table import Route

KINDS: Mapping[str, str] = {
    "modelroutes": "ModelRoute",
    "modelservers": "ModelServer",
    "pods": "Pod",
    "gateways": "Gateway",
    "httproutes": "HTTPRoute",
    "inferencepools": "InferencePool",
}
"""Path segment to what a missing object is called."""


class ConfigDump:
    """The objects by kind, made anew for each question."""

    def __init__(self, state: RouterState, scheduling: Scheduling) -> None:
        self._state = state
        self._scheduling = scheduling

    def objects(self, kind: str) -> list[dict[str, Any]]:
        """All of a kind of `KINDS`, in the order of their names."""
        makers: Mapping[str, Iterator[dict[str, Any]]] = {
            "modelroutes": map(_route, self._state.table.routes),
            "modelservers": map(_server, self._state.fleet.servers()),
            "pods": self._pods(),
        }
        found = makers.get(kind, iter(()))
        return sorted(found, key=lambda each: (each["namespace"], each["name"]))

    def object(self, kind: str, namespace: str, name: str) -> dict[str, Any] | None:
        """The first of that name; a pod with what only its own page tells. None: there is none."""
        for each in self.objects(kind):
            if (each["namespace"], each["name"]) == (namespace, name):
                return each
        return None

    def _pods(self) -> Iterator[dict[str, Any]]:
        servers: dict[Endpoint, list[str]] = {}
        entries: dict[Endpoint, tuple[str, EndpointEntry]] = {}
        for state in self._state.fleet.servers():
            for entry, endpoint in zip(state.server.endpoints, state.endpoints, strict=True):
                servers.setdefault(endpoint, []).append(state.server.name)
                entries.setdefault(endpoint, (state.server.key.namespace, entry))
        now_ms = self._state.now_ms()
        for endpoint, (namespace, entry) in entries.items():
            reading = self._scheduling.polling.readings.get(endpoint, UNREAD)
            yield {
                "namespace": namespace,
                "name": entry.pod,
                "modelServers": sorted(servers[endpoint]),
                **_pod(entry, reading),
                "load": _load(endpoint, now_ms),
            }


def _route(route: Route) -> dict[str, Any]:
    return {
        "namespace": route.key.namespace,
        "name": route.key.name,
        "modelName": route.model_name,
        "loraAdapters": list(route.adapters),
        "rules": [
            {
                "name": rule.name,
                "targetModels": [
                    {"modelServerName": key.name, "weight": weight}
                    for key, weight in zip(rule.servers, rule.weights, strict=True)
                ],
            }
            for rule in route.rules
        ],
        "rateLimit": route.limit.to_dict() if route.limit else None,
    }


def _server(state: ServerState[Endpoint]) -> dict[str, Any]:
    server = state.server
    return {
        "namespace": server.key.namespace,
        "name": server.key.name,
        "model": server.model,
        "scaleTarget": str(server.target) if server.target else None,
        "associatedPods": _pods_of(state, server.endpoints),
        "decodePods": _pods_of(state, (each for each in server.endpoints if each.role == "decode")),
        "prefillPods": _pods_of(
            state, (each for each in server.endpoints if each.role == "prefill")
        ),
        "candidatePods": sorted(each.pod for each in state.candidates),
    }


def _pods_of(state: ServerState[Endpoint], entries: Iterable[EndpointEntry]) -> list[str]:
    return sorted(f"{state.server.key.namespace}/{entry.pod}" for entry in entries)


def _pod(entry: EndpointEntry, reading: EngineReading) -> dict[str, Any]:
    return {
        "metrics": {
            "gpuCacheUsage": reading.kv_cache_usage,
            "requestWaitingNum": reading.waiting,
            "requestRunningNum": reading.running,
            "tpot": reading.tpot_seconds,
            "ttft": reading.ttft_seconds,
        },
        "models": None if reading.models is None else sorted(reading.models),
        "podInfo": {
            "podIP": entry.address,
            "port": entry.port,
            "ready": entry.ready,
            "draining": entry.draining,
            "role": entry.role,
            "group": entry.group,
        },
    }


def _load(endpoint: Endpoint, now_ms: int) -> dict[str, Any]:
    health = endpoint.health
    return {
        "inFlight": endpoint.in_flight,
        "waitingPromptTokens": endpoint.waiting_prompt_tokens,
        "predictedWaitMs": round(endpoint.predicted_wait_ms(now_ms, endpoint.ms_per_token)),
        "promptMsPerToken": endpoint.ms_per_token,
        "idleConnections": len(endpoint.idle.items()),
        "consecutiveFailures": health.failures,
        "ejectedForMs": max(0, health.ejected_until_ms - now_ms),
    }
