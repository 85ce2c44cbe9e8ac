"""The table as objects of other gateways, for clusters that keep their own.

ModelRoutes become HTTPRoutes or Envoy AI Gateway's AIGatewayRoutes, ModelServers InferencePools or
AIServiceBackends with their Backends. Invariant: what the other gateway can't do as the object says
is told beside what it can, never left out in silence (Gateway API v1, Inference Extension v1, Envoy
AI Gateway v1beta1).
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from inferbus_contracts.events.route import (
    MatchRule,
    ParentEntry,
    RouteEntry,
    RuleEntry,
    ServerEntry,
    StringRule,
)
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.resources import kinds
from inferbus_contracts.resources.networking import ModelServer

BODY_HEADER = "X-Gateway-Model-Name"
"""Where the Inference Extension's body-based routing writes the model that is asked for."""
ENVOY_HEADER = "x-ai-eg-model"
"""Where Envoy AI Gateway writes it."""
ENVOY_AI = "aigateway.envoyproxy.io/v1beta1"
ENVOY_GROUP = "gateway.envoyproxy.io"

Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Output:
    """Objects of another gateway, and what they can't say."""

    objects: tuple[Object, ...]
    lost: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Picker:
    """The endpoint picker that a pool has to name."""

    name: str
    port: int


def http_route(key: ObjectKey, route: RouteEntry) -> Output:
    """The HTTPRoute of a ModelRoute; its pools are named like its servers."""
    lost = list(_lost_of_route(route, key))
    pool = {"group": kinds.POOL_GROUP, "kind": kinds.INFERENCE_POOL}
    rules = [
        {
            "matches": list(_matches(route, rule, BODY_HEADER, lost)),
            "backendRefs": [pool | ref for ref in _targets(rule)],
        }
        for rule in route.rules
    ]
    spec = {"parentRefs": _parents(route.parents), "rules": rules}
    api = f"{kinds.GATEWAY_GROUP}/v1"
    return Output((_object(api, kinds.HTTP_ROUTE, key, spec),), tuple(dict.fromkeys(lost)))


def inference_pool(key: ObjectKey, server: ModelServer, picker: Picker) -> Output:
    """The InferencePool of a ModelServer."""
    port = server.spec.workload_port
    if port is None:
        return Output((), (f"{key}: names no port, so it can be no pool",))
    selector = server.spec.workload_selector
    lost = [f"{key}: prefill and decode aren't told apart"] if selector.pd_group else []
    if server.spec.model:
        lost.append(f"{key}: the model isn't renamed to {server.spec.model}")
    if server.spec.traffic_policy:
        lost.append(f"{key}: trafficPolicy")
    spec = {
        "selector": {"matchLabels": dict(selector.match_labels)},
        "targetPorts": [{"number": port.port}],
        "endpointPickerRef": {"name": picker.name, "port": {"number": picker.port}},
    }
    api = f"{kinds.POOL_GROUP}/v1"
    return Output((_object(api, kinds.INFERENCE_POOL, key, spec),), tuple(lost))


def ai_gateway_route(
    key: ObjectKey, route: RouteEntry, servers: Mapping[str, ServerEntry]
) -> Output:
    """The AIGatewayRoute of a ModelRoute; `servers` by their keys tell upstream names."""
    lost = list(_lost_of_route(route, key))
    rules = [
        {
            "matches": list(_matches(route, rule, ENVOY_HEADER, lost)),
            "backendRefs": [
                ref | _override(servers.get(target.server))
                for ref, target in zip(_targets(rule), rule.targets, strict=True)
            ],
        }
        for rule in route.rules
    ]
    spec = {"parentRefs": _parents(route.parents), "rules": rules}
    lost += [f"{key}: a match by path" for rule in route.rules if rule.match and rule.match.uri]
    for rule in rules:
        for match in rule["matches"]:
            match.pop("path", None)
    return Output((_object(ENVOY_AI, "AIGatewayRoute", key, spec),), tuple(dict.fromkeys(lost)))


def ai_service_backend(key: ObjectKey, server: ServerEntry) -> Output:
    """The AIServiceBackend of a server, and the Backend with its ready endpoints."""
    endpoints = [
        {"ip": {"address": one.address, "port": one.port}}
        for one in server.endpoints
        if one.ready and not one.draining and one.role != "prefill"
    ]
    reference = {"group": ENVOY_GROUP, "kind": "Backend", "name": key.name}
    spec = {"schema": {"name": "OpenAI"}, "backendRef": reference}
    lost = []
    if any(one.role for one in server.endpoints):
        lost.append(f"{key}: prefill and decode aren't told apart")
    if server.protocol == "https":
        lost.append(f"{key}: TLS to the endpoints needs a BackendTLSPolicy")
    return Output(
        (
            _object(ENVOY_AI, "AIServiceBackend", key, spec),
            _object(f"{ENVOY_GROUP}/v1alpha1", "Backend", key, {"endpoints": endpoints}),
        ),
        tuple(lost),
    )


def _object(api: str, kind: str, key: ObjectKey, spec: Object) -> Object:
    metadata = {"name": key.name, "namespace": key.namespace}
    return {"apiVersion": api, "kind": kind, "metadata": metadata, "spec": spec}


def _parents(parents: Sequence[ParentEntry] | None) -> list[Object]:
    found = []
    for parent in parents or ():
        gateway = ObjectKey.parse(parent.gateway)
        section = {"sectionName": parent.section} if parent.section else {}
        port = {"port": parent.port} if parent.port else {}
        place = {"name": gateway.name, "namespace": gateway.namespace}
        found.append({"group": kinds.GATEWAY_GROUP, "kind": kinds.GATEWAY} | place | section | port)
    return found


def _targets(rule: RuleEntry) -> list[Object]:
    return [
        {"name": ObjectKey.parse(target.server).name, "weight": target.weight}
        for target in rule.targets
    ]


def _override(server: ServerEntry | None) -> Object:
    return {"modelNameOverride": server.model} if server is not None and server.model else {}


def _matches(route: RouteEntry, rule: RuleEntry, header: str, lost: list[str]) -> Iterator[Object]:
    """One for each name that clients may use."""
    match = rule.match or MatchRule()
    names = dict.fromkeys(name for name in (route.model_name, *route.adapters) if name)
    path = {"path": _path(match.uri)} if match.uri else {}
    for name in names:
        if match.model in (None, name):
            own = {"type": "Exact", "name": header, "value": name}
            yield {"headers": [own, *_headers(match, lost)], **path}


def _headers(match: MatchRule, lost: list[str]) -> Iterator[Object]:
    for name, rule in match.headers.items():
        if rule.exact is not None:
            yield {"type": "Exact", "name": name, "value": rule.exact}
        elif rule.prefix is not None:
            pattern = re.escape(rule.prefix) + ".*"
            yield {"type": "RegularExpression", "name": name, "value": pattern}
        elif rule.regex is not None:
            yield {"type": "RegularExpression", "name": name, "value": f".*{rule.regex}.*"}
            lost.append(f"header {name}: the pattern is searched for by dialect of the gateway")


def _path(rule: StringRule) -> Object:
    if rule.exact is not None:
        return {"type": "Exact", "value": rule.exact}
    if rule.prefix is not None and rule.prefix.endswith("/"):
        return {"type": "PathPrefix", "value": rule.prefix}
    if rule.prefix is not None:
        return {"type": "RegularExpression", "value": re.escape(rule.prefix) + ".*"}
    return {"type": "RegularExpression", "value": f".*{rule.regex or ''}.*"}


def _lost_of_route(route: RouteEntry, key: ObjectKey) -> Iterator[str]:
    if route.limit is not None:
        yield f"{key}: rateLimit"
    if not route.parents:
        yield f"{key}: names no Gateway, so no gateway takes it"
