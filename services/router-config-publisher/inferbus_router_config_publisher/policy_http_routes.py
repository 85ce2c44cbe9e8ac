"""Gateways and HTTPRoutes as routers need them.

Invariant: a route is attached only to listeners that take it (Gateway API v1; routing spec 2.7).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from inferbus_contracts.envelope import parse_time
from inferbus_contracts.events.route import (
    GatewayEntry,
    ListenerEntry,
    ParentEntry,
    RouteEntry,
)
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.resources import kinds
from inferbus_contracts.resources.gateway_api import (
    FromNamespaces,
    Gateway,
    GatewayListener,
    HTTPRoute,
)
from inferbus_contracts.resources.networking import ParentReference
from inferbus_router_config_publisher.policy_http_rules import ReadHttpRules

OUR_CLASSES = frozenset({"kthena-router", "inferbus"})
"""Classes of Gateways that the routers are: the reference's name, and the platform's own."""
HTTP = "HTTP"
"""The protocol of listeners that routers serve; their own port may speak TLS by setting."""

_WILDCARD = "*."

FindGateway = Callable[[ObjectKey], Gateway | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpRouteView:
    """An HTTPRoute with everything that follows from its object and the Gateways it names."""

    resource: HTTPRoute
    entry: RouteEntry
    gateways: frozenset[ObjectKey]
    """That it names, whether they exist or not."""
    pools: tuple[ObjectKey, ...]
    """That it names, each once."""
    refused: tuple[str, ...] = ()
    """Why parents don't take it."""
    left_out: tuple[str, ...] = ()
    """Rules and matches that aren't in force, with the reason."""
    unusable: tuple[str, ...] = ()
    """Backends that lead nowhere, with the reason."""


def is_ours(gateway: Gateway) -> bool:
    """Whether the routers are this Gateway."""
    return gateway.spec.gateway_class_name in OUR_CLASSES


def gateway_entry(gateway: Gateway) -> GatewayEntry:
    """The listeners that routers serve."""
    return GatewayEntry(
        listeners=[
            ListenerEntry(name=one.name, port=one.port, hostname=one.hostname.lower())
            for one in gateway.spec.listeners
            if one.protocol == HTTP
        ]
    )


def gateway_of(reference: ParentReference, namespace: str) -> ObjectKey | None:
    """The Gateway that a parent names; None where it names something else."""
    if (reference.group, reference.kind) != (kinds.GATEWAY_GROUP, kinds.GATEWAY):
        return None
    return ObjectKey(kinds.GATEWAY, reference.namespace or namespace, reference.name)


def declared_parents(references: list[ParentReference], namespace: str) -> list[ParentEntry] | None:
    """The parents of a ModelRoute as it names them; None where it names none."""
    if not references:
        return None
    return [
        ParentEntry(gateway=str(key), section=one.section_name or "", port=one.port)
        for one in references
        if (key := gateway_of(one, namespace)) is not None
    ]


def parent_fault(reference: ParentReference, namespace: str, find: FindGateway) -> str:
    """Why a parent leads to no listener of the routers; empty when it leads to one."""
    key = gateway_of(reference, namespace)
    if key is None:
        return f"parent {reference.kind} {reference.name} is no Gateway"
    gateway = find(key)
    if gateway is None:
        return f"Gateway {key.namespace}/{key.name} does not exist"
    if not is_ours(gateway):
        name = gateway.spec.gateway_class_name
        return f"Gateway {key.namespace}/{key.name} is of the class {name}, not of the routers'"
    if not list(_named_listeners(reference, gateway)):
        return f"Gateway {key.namespace}/{key.name} has no such HTTP listener"
    return ""


def http_route_view(route: HTTPRoute, namespace: str, find: FindGateway) -> HttpRouteView:
    """Read an HTTPRoute; `find` gives the Gateways."""
    read = ReadHttpRules(namespace)
    rules = [
        entry for place, rule in enumerate(route.spec.rules) for entry in read.rule(place, rule)
    ]
    refused: list[str] = []
    parents = list(_accepting(route, namespace, find, refused))
    named = (gateway_of(one, namespace) for one in route.spec.parent_refs)
    return HttpRouteView(
        resource=route,
        entry=RouteEntry(
            rules=rules,
            parents=parents,
            hostnames=[name.lower() for name in route.spec.hostnames] or None,
            created_at_ms=_created_ms(route),
        ),
        gateways=frozenset(key for key in named if key is not None),
        pools=tuple(read.pools),
        refused=tuple(refused),
        left_out=tuple(read.left_out),
        unusable=tuple(read.unusable),
    )


def _accepting(
    route: HTTPRoute, namespace: str, find: FindGateway, refused: list[str]
) -> Iterator[ParentEntry]:
    for reference in route.spec.parent_refs:
        fault = parent_fault(reference, namespace, find)
        if fault:
            refused.append(fault)
            continue
        key = gateway_of(reference, namespace)
        assert key is not None
        gateway = find(key)
        assert gateway is not None
        for listener in _named_listeners(reference, gateway):
            fault = _refusal(listener, key, route, namespace)
            if fault:
                refused.append(f"listener {listener.name} of {key.namespace}/{key.name} {fault}")
            else:
                yield ParentEntry(gateway=str(key), section=listener.name)


def _named_listeners(reference: ParentReference, gateway: Gateway) -> Iterator[GatewayListener]:
    for listener in gateway.spec.listeners:
        if (
            listener.protocol == HTTP
            and reference.section_name in (None, listener.name)
            and reference.port in (None, listener.port)
        ):
            yield listener


def _refusal(listener: GatewayListener, key: ObjectKey, route: HTTPRoute, namespace: str) -> str:
    """Why a listener doesn't take a route; empty when it does."""
    allowed = listener.allowed_routes
    own_kind = (kinds.GATEWAY_GROUP, kinds.HTTP_ROUTE)
    if allowed.kinds and own_kind not in {(one.group, one.kind) for one in allowed.kinds}:
        return "takes no HTTPRoutes"
    source = allowed.namespaces.from_
    if source is FromNamespaces.SELECTOR:
        return "selects namespaces by label, which the routers don't know; use All or Same"
    if source is FromNamespaces.NONE or (
        source is FromNamespaces.SAME and namespace != key.namespace
    ):
        return f"takes no routes of the namespace {namespace}"
    hostnames = route.spec.hostnames
    if listener.hostname and hostnames:
        own = listener.hostname.lower()
        if not any(_meet(own, name.lower()) for name in hostnames):
            return f"is for {own}, and the route isn't"
    return ""


def _meet(one: str, other: str) -> bool:
    """Whether some host fits both hostnames."""
    if one == other:
        return True
    if one.startswith(_WILDCARD) and other.endswith(one[1:]):
        return True
    return other.startswith(_WILDCARD) and one.endswith(other[1:])


def _created_ms(route: HTTPRoute) -> int:
    text = route.metadata.creation_timestamp
    try:
        return parse_time(text) if text else 0
    except ValueError:
        return 0
