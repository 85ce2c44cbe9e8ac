"""Gateways and HTTPRoutes as routers need them.

Invariant: a route is attached only to listeners that take it, and what of a rule can't be done as
it says is left out and named: a request is never served as if it stood there differently (Gateway
API v1; routing spec 2.7 with defect 28).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from inferbus_contracts.admission.rules_networking import pattern_fault
from inferbus_contracts.envelope import parse_time
from inferbus_contracts.events.route import (
    GatewayEntry,
    HttpMatch,
    ListenerEntry,
    ParentEntry,
    PathType,
    RouteEntry,
    RuleEntry,
    StringRule,
    TargetShare,
    UrlRewrite,
)
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.resources import kinds
from inferbus_contracts.resources.gateway_api import (
    FromNamespaces,
    Gateway,
    GatewayListener,
    HTTPBackendRef,
    HTTPRoute,
    HTTPRouteFilter,
    HTTPRouteMatch,
    HTTPRouteRule,
    NamedValueMatch,
)
from inferbus_contracts.resources.networking import ParentReference

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
    read = _Read(namespace)
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


@dataclass
class _Read:
    """Rules that were read, and what is to be said about them."""

    namespace: str
    pools: list[ObjectKey] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    unusable: list[str] = field(default_factory=list)

    def rule(self, place: int, rule: HTTPRouteRule) -> Iterator[RuleEntry]:
        """What routers get of a rule: one entry, or none."""
        name = f'rule "{rule.name}"' if rule.name else f"rules[{place}]"
        fault = _filters_fault(rule)
        targets = [share for one in rule.backend_refs for share in self._share(one, name)]
        matches = [
            entry
            for number, match in enumerate(rule.matches or [HTTPRouteMatch()])
            for entry in self._match(match, f"{name}.matches[{number}]")
        ]
        if fault:
            self.left_out.append(f"{name}: {fault}")
        elif matches:
            rewrite = _rewrite(rule.filters)
            yield RuleEntry(name=rule.name, targets=targets, http=matches, rewrite=rewrite)

    def _share(self, reference: HTTPBackendRef, rule: str) -> Iterator[TargetShare]:
        fault = self._backend_fault(reference)
        if fault:
            self.unusable.append(f"{rule}: {fault}")
            return
        key = ObjectKey(kinds.INFERENCE_POOL, self.namespace, reference.name)
        if key not in self.pools:
            self.pools.append(key)
        yield TargetShare(server=str(key), weight=reference.weight)

    def _backend_fault(self, reference: HTTPBackendRef) -> str:
        if (reference.group, reference.kind) != (kinds.POOL_GROUP, kinds.INFERENCE_POOL):
            return f"{reference.kind} {reference.name} is no InferencePool"
        if reference.namespace not in (None, self.namespace):
            place = f"{reference.namespace}/{reference.name}"
            return f"InferencePool {place} is in another namespace, which nobody has granted"
        if reference.filters:
            return f"filters of the backend {reference.name} are not supported"
        return ""

    def _match(self, match: HTTPRouteMatch, name: str) -> Iterator[HttpMatch]:
        fault = _match_fault(match)
        if fault:
            self.left_out.append(f"{name}: {fault}")
            return
        yield HttpMatch(
            path_type=PathType(match.path.type),
            path=match.path.value,
            method=match.method,
            headers={one.name.lower(): _value_rule(one) for one in reversed(match.headers)},
            query={one.name: _value_rule(one) for one in reversed(match.query_params)},
        )


def _match_fault(match: HTTPRouteMatch) -> str:
    if match.path.type not in set(PathType):
        return f"path type {match.path.type} is not known"
    patterns = [match.path.value] if match.path.type == PathType.REGEX else []
    for one in (*match.headers, *match.query_params):
        if one.type not in ("Exact", PathType.REGEX):
            return f"type {one.type} of {one.name} is not known"
        if one.type == PathType.REGEX:
            patterns.append(one.value)
    faults = (pattern_fault(pattern) for pattern in patterns)
    return next((f"a pattern doesn't compile: {fault}" for fault in faults if fault), "")


def _value_rule(match: NamedValueMatch) -> StringRule:
    """A pattern is for the whole value."""
    if match.type == PathType.REGEX:
        return StringRule(regex=f"^(?:{match.value})$")
    return StringRule(exact=match.value)


def _filters_fault(rule: HTTPRouteRule) -> str:
    for one in rule.filters:
        if one.type != "URLRewrite" or one.url_rewrite is None:
            return f"filter {one.type} is not supported"
        path = one.url_rewrite.path
        if path is not None and path.type == "ReplacePrefixMatch":
            others = [m.path.type for m in rule.matches if m.path.type != PathType.PREFIX]
            if others:
                return f"ReplacePrefixMatch needs matches by prefix, not {others[0]}"
    return ""


def _rewrite(filters: list[HTTPRouteFilter]) -> UrlRewrite | None:
    for one in filters:
        if one.url_rewrite is not None:
            path = one.url_rewrite.path
            return UrlRewrite(
                hostname=one.url_rewrite.hostname,
                full_path=path.replace_full_path if path else None,
                prefix=path.replace_prefix_match if path else None,
            )
    return None
