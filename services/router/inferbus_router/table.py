"""The routing table: an immutable snapshot of the parts that the router-config-publisher
publishes.

Built part by part from `RoutePublished`; the compiled form of a part that didn't change is carried
over to the next snapshot as the same object. Invariant: two tables of the same parts have the same
digest and route alike, whatever order the parts came in.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from inferbus_contracts.events.route import (
    Authentication,
    EndpointEntry,
    ParentEntry,
    RouteEntry,
    RoutePublished,
    RuleEntry,
    ServerEntry,
    SessionAffinity,
    TokenLimit,
    UrlRewrite,
)
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.resources.kinds import HTTP_ROUTE
from inferbus_router.gateways import (
    GatewayListener,
    GatewayPart,
    Gateways,
    compile_listeners,
    is_attached,
)
from inferbus_router.http_routes import HttpRoutes, Match
from inferbus_router.matching import Conditions, compile_conditions
from inferbus_router.policy_connectors import Disaggregation, disaggregation_of
from inferbus_router.policy_provider import Provider
from inferbus_router.table_change import TableChange, updated
from inferbus_router.table_indexes import TableIndexes
from inferbus_router.table_parts import HeldParts, Published
from inferbus_router.transport import Transport, Trust


@dataclass(frozen=True, slots=True, eq=False)
class Rule:
    """One rule of a route; identical only with itself, so that state can be kept beside it."""

    name: str
    conditions: Conditions | None
    servers: tuple[ObjectKey, ...]
    weights: tuple[int, ...]
    """Of the servers, in their order; not all 0."""
    http: tuple[Match, ...] = ()
    """Of an HTTPRoute: one of them must hold."""
    rewrite: UrlRewrite | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Route:
    """A ModelRoute or an HTTPRoute, compiled."""

    key: ObjectKey
    name: str
    """`namespace/name`, for logs and metrics."""
    model_name: str
    adapters: tuple[str, ...]
    created_at_ms: int
    owned_by: str
    rules: tuple[Rule, ...]
    limit: TokenLimit | None
    authentication: Authentication | None
    parents: tuple[ParentEntry, ...] | None = None
    """None: attached to no Gateway."""
    hostnames: tuple[str, ...] = ()
    """Of an HTTPRoute, in lower case; none: any."""
    is_http: bool = False
    """It is an HTTPRoute, which looks at no model's name."""

    def holds_at(self, listener: GatewayListener | None) -> bool:
        """Whether it is for requests of a listener; None: of the routers' own port."""
        return is_attached(self.parents, self.key.namespace, listener)

    @property
    def names(self) -> tuple[str, ...]:
        """Those that clients may use; the empty one among them where it serves adapters alone."""
        return (self.model_name, *self.adapters)


Candidates = tuple[tuple[Route, Rule], ...]
"""The rules that may serve a name, with their routes, in the order they are tried."""


@dataclass(frozen=True, slots=True, eq=False)
class Server:
    """A ModelServer or an InferencePool, compiled."""

    key: ObjectKey
    name: str
    """`namespace/name`, for logs and metrics."""
    target: ObjectKey | None
    model: str | None
    protocol: str
    timeout_ms: int | None
    try_timeout_ms: int | None
    retry_attempts: int
    retry_interval_ms: int
    session: SessionAffinity | None
    provider: Provider | None
    """None: its endpoints are of the fleet."""
    endpoints: tuple[EndpointEntry, ...]
    disaggregation: Disaggregation | None = None

    @property
    def transport(self) -> Transport:
        """How its endpoints are spoken to."""
        if self.provider is None:
            return Transport(self.protocol, Trust.FLEET)
        return Transport(self.protocol, Trust.ANYBODY if self.provider.insecure else Trust.PUBLIC)


def _candidates_of(route: Route) -> Candidates:
    return tuple((route, rule) for rule in route.rules)


class RoutingTable:
    """All routes and servers at one moment; never changed once made."""

    def __init__(self) -> None:
        """The empty table, before the first message."""
        self._parts: HeldParts[Route | Server | GatewayPart] = HeldParts(_compile)
        self.identity = object()
        """Tells this table from others, and keeps none of them alive."""
        self.change: TableChange[Route] = TableChange(None)
        """How it differs from the one it was made from."""
        self._by_key: dict[ObjectKey, Route] = {}
        self.routes: tuple[Route, ...] = ()
        """In no particular order; the same object as before where no route changed."""
        self.servers: dict[ObjectKey, Server] = {}
        self.indexes = TableIndexes(_candidates_of)
        """Of ModelRoutes."""
        self.http: HttpRoutes[Route, Rule] = HttpRoutes()
        """Of HTTPRoutes."""
        self._gateways: dict[ObjectKey, GatewayPart] = {}
        self.gateways: Gateways | None = None
        """None where there is no Gateway: every request then comes in by the routers' own port."""

    @property
    def revision(self) -> int:
        """The highest that was seen."""
        return self._parts.revision

    @property
    def digest(self) -> str:
        """Digest over the parts that are held, as `RoutePublished` defines it."""
        return self._parts.digest

    @property
    def is_complete(self) -> bool:
        """True when the parts are exactly those that the publisher has."""
        return self._parts.expected_digest == self.digest

    def with_parts(self, published: Published) -> "RoutingTable":
        """The table after these messages (`HeldParts.after`)."""
        return self._with(*self._parts.after(published))

    def replaced_by(self, published: Published) -> "RoutingTable":
        """The table of these messages alone (`HeldParts.replaced_by`)."""
        return self._with(*self._parts.replaced_by(published))

    def has_lost_names(self, earlier: "RoutingTable") -> bool:
        """Whether a model's name or a scale target of the table it was made from is gone."""
        known = self.indexes.names
        if any(name and name not in known for route in self.change.gone for name in route.names):
            return True
        changed = ((earlier.servers.get(key), self.servers.get(key)) for key in self.change.servers)
        return any(
            before is not None and (after is None or after.target != before.target)
            for before, after in changed
        )

    def _with(
        self, parts: HeldParts[Route | Server | GatewayPart], touched: Iterable[ObjectKey]
    ) -> "RoutingTable":
        table = RoutingTable()
        table._parts = parts
        gone: list[Route] = []
        new: list[Route] = []
        servers: dict[ObjectKey, Server | None] = {}
        gateways: dict[ObjectKey, GatewayPart | None] = {}
        for key in touched:
            before, after = self._parts.get(key), parts.get(key)
            if before is after:
                continue
            if isinstance(before, Route):
                gone.append(before)
            if isinstance(after, Route):
                new.append(after)
            if isinstance(before, Server) or isinstance(after, Server):
                servers[key] = after if isinstance(after, Server) else None
            if isinstance(before, GatewayPart) or isinstance(after, GatewayPart):
                gateways[key] = after if isinstance(after, GatewayPart) else None
        table.change = TableChange(self.identity, tuple(gone), tuple(new), tuple(servers))
        table.servers = updated(self.servers, servers)
        table._take_gateways(self, gateways)
        table._take_routes(self)
        return table

    def _take_gateways(
        self, earlier: "RoutingTable", changed: dict[ObjectKey, GatewayPart | None]
    ) -> None:
        self._gateways, self.gateways = earlier._gateways, earlier.gateways
        if changed:
            self._gateways = updated(earlier._gateways, changed)
            listeners = [one for part in self._gateways.values() for one in part.listeners]
            self.gateways = Gateways(listeners) if self._gateways else None

    def _take_routes(self, earlier: "RoutingTable") -> None:
        gone, new = self.change.gone, self.change.new
        self._by_key, self.routes = earlier._by_key, earlier.routes
        self.indexes, self.http = earlier.indexes, earlier.http
        if not self.change.has_routes:
            return
        changed: dict[ObjectKey, Route | None] = {route.key: None for route in gone}
        self._by_key = updated(earlier._by_key, changed | {route.key: route for route in new})
        self.routes = tuple(self._by_key.values())
        left, come = _listed(gone, is_http=False), _listed(new, is_http=False)
        if left or come:
            self.indexes = earlier.indexes.after(left, come)
        left, come = _listed(gone, is_http=True), _listed(new, is_http=True)
        if left or come:
            self.http = earlier.http.after(left, [(route, route.rules) for route in come])


def _listed(routes: Iterable[Route], *, is_http: bool) -> list[Route]:
    return [route for route in routes if route.is_http == is_http]


def _compile(key: ObjectKey, message: RoutePublished) -> Route | Server | GatewayPart | None:
    if message.route:
        return _compile_route(key, message.route)
    if message.server:
        return _compile_server(key, message.server)
    return GatewayPart(compile_listeners(key, message.gateway)) if message.gateway else None


def _compile_rule(rule: RuleEntry) -> Rule:
    return Rule(
        name=rule.name,
        conditions=compile_conditions(rule.match),
        servers=tuple(ObjectKey.parse(target.server) for target in rule.targets),
        weights=tuple(max(0, target.weight) for target in rule.targets),
        http=tuple(match for entry in rule.http or () if (match := Match.of(entry)) is not None),
        rewrite=rule.rewrite,
    )


def _compile_route(key: ObjectKey, entry: RouteEntry) -> Route:
    """A ModelRoute's rule without a share for anybody is passed over; an HTTPRoute's refuses."""
    rules = tuple(
        _compile_rule(rule)
        for rule in entry.rules
        if rule.http or any(target.weight > 0 for target in rule.targets)
    )
    return Route(
        key=key,
        name=f"{key.namespace}/{key.name}",
        model_name=entry.model_name,
        adapters=tuple(entry.adapters),
        created_at_ms=entry.created_at_ms,
        owned_by=entry.owned_by,
        rules=rules,
        limit=entry.limit,
        authentication=entry.authentication,
        parents=None if entry.parents is None else tuple(entry.parents),
        hostnames=tuple(name.lower() for name in entry.hostnames or ()),
        is_http=key.kind == HTTP_ROUTE,
    )


def _compile_server(key: ObjectKey, entry: ServerEntry) -> Server:
    return Server(
        key=key,
        name=f"{key.namespace}/{key.name}",
        target=ObjectKey.parse(entry.target) if entry.target else None,
        model=entry.model,
        protocol=entry.protocol,
        timeout_ms=entry.timeout_ms,
        try_timeout_ms=entry.try_timeout_ms,
        retry_attempts=entry.retry_attempts,
        retry_interval_ms=entry.retry_interval_ms,
        session=entry.session,
        provider=Provider(key, entry.provider) if entry.provider else None,
        endpoints=tuple(entry.endpoints),
        disaggregation=disaggregation_of(entry),
    )
