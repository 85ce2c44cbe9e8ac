"""Table parts and requests, as short as tests want them."""

from collections.abc import Mapping
from typing import Any

from inferbus_contracts.events.route import (
    EndpointEntry,
    GatewayEntry,
    HttpMatch,
    ListenerEntry,
    MatchRule,
    ParentEntry,
    RouteEntry,
    RuleEntry,
    ServerEntry,
    StringRule,
    TargetShare,
    UrlRewrite,
)
from inferbus_contracts.keys import ObjectKey
from inferbus_router.adapters_static import published
from inferbus_router.request import Request, RequestHead, read_head
from inferbus_router.table import RoutingTable

NAMESPACE = "ns"


def server_key(name: str) -> ObjectKey:
    """The key of a model server in the tests' namespace."""
    return ObjectKey("ModelServer", NAMESPACE, name)


def route_key(name: str) -> ObjectKey:
    """The key of a route in the tests' namespace."""
    return ObjectKey("ModelRoute", NAMESPACE, name)


def endpoint(port: int = 8000, **fields: Any) -> EndpointEntry:
    """A ready endpoint."""
    return EndpointEntry(**{"pod": f"pod-{port}", "address": "127.0.0.1", "port": port} | fields)


def server(*endpoints: EndpointEntry, **fields: Any) -> ServerEntry:
    """A model server with a scale target."""
    return ServerEntry(**{"target": "ModelServing/ns/ms", "endpoints": list(endpoints)} | fields)


def rule(*targets: str | tuple[str, int], **match: Any) -> RuleEntry:
    """A rule; `headers={"tier": StringRule(...)}`, `uri=StringRule(...)`, `model="x"`."""
    shares = [target if isinstance(target, tuple) else (target, 100) for target in targets]
    return RuleEntry(
        match=MatchRule(**match) if match else None,
        targets=[
            TargetShare(server=str(server_key(name)), weight=weight) for name, weight in shares
        ],
    )


def route(*rules: RuleEntry, model: str = "m", **fields: Any) -> RouteEntry:
    """A route; by default to the model server `ms`."""
    return RouteEntry(model_name=model, rules=list(rules) or [rule("ms")], **fields)


Entries = Mapping[ObjectKey, RouteEntry | ServerEntry | GatewayEntry]


def pool_key(name: str) -> ObjectKey:
    """The key of an InferencePool in the tests' namespace."""
    return ObjectKey("InferencePool", NAMESPACE, name)


def http_route_key(name: str) -> ObjectKey:
    """The key of an HTTPRoute in the tests' namespace."""
    return ObjectKey("HTTPRoute", NAMESPACE, name)


def gateway_key(name: str, namespace: str = NAMESPACE) -> ObjectKey:
    """The key of a Gateway."""
    return ObjectKey("Gateway", namespace, name)


def http_rule(
    *pools: str | tuple[str, int], rewrite: UrlRewrite | None = None, **match: Any
) -> RuleEntry:
    """A rule of an HTTPRoute with one match."""
    shares = [pool if isinstance(pool, tuple) else (pool, 1) for pool in pools]
    return RuleEntry(
        targets=[TargetShare(server=str(pool_key(name)), weight=weight) for name, weight in shares],
        http=[HttpMatch(**match)],
        rewrite=rewrite,
    )


def http_route(*rules: RuleEntry, gateway: str = "g", **fields: Any) -> RouteEntry:
    """An HTTPRoute, attached to all of a Gateway of the tests' namespace."""
    parents = [ParentEntry(gateway=str(gateway_key(gateway)))]
    return RouteEntry(**{"rules": list(rules), "parents": parents} | fields)


def gateway(*listeners: ListenerEntry) -> GatewayEntry:
    """A Gateway."""
    return GatewayEntry(listeners=list(listeners))


def listener(port: int = 8080, name: str = "default", hostname: str = "") -> ListenerEntry:
    """A listener."""
    return ListenerEntry(name=name, port=port, hostname=hostname)


def table_of(entries: Entries) -> RoutingTable:
    """The table of these parts."""
    return RoutingTable().with_parts(published(entries))


def exact(text: str) -> StringRule:
    """The text itself."""
    return StringRule(exact=text)


def prefix(text: str) -> StringRule:
    """How the text begins."""
    return StringRule(prefix=text)


def regex(text: str) -> StringRule:
    """A pattern found in the text."""
    return StringRule(regex=text)


def head_of(
    path: str = "/v1/chat/completions", headers: Mapping[str, str] | None = None
) -> RequestHead:
    """The head of a POST."""
    lines = "".join(f"\r\n{name}: {value}" for name, value in (headers or {}).items())
    return read_head(f"POST {path} HTTP/1.1\r\nhost: router{lines}".encode())


def request_of(path: str = "/v1/chat/completions") -> Request:
    """A POST as the reader makes it."""
    return Request(head_of(path), keep_alive=True)
