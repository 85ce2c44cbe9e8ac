"""The routing table: an immutable snapshot of the parts that the router-config-publisher
publishes.

Built part by part from `RoutePublished`; the compiled form of a part that didn't change is carried
over to the next snapshot as the same object. Invariant: two tables of the same parts have the same
digest and route alike, whatever order the parts came in.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from inferbus_contracts.canonical import digest
from inferbus_contracts.events.route import (
    EndpointEntry,
    RouteEntry,
    RoutePublished,
    ServerEntry,
    TokenLimit,
)
from inferbus_contracts.keys import ObjectKey
from inferbus_router.matching import Conditions, compile_conditions
from inferbus_router.policy_connectors import Disaggregation, disaggregation_of


@dataclass(frozen=True, slots=True, eq=False)
class Rule:
    """One rule of a route; identical only with itself, so that state can be kept beside it."""

    name: str
    conditions: Conditions | None
    servers: tuple[ObjectKey, ...]
    weights: tuple[int, ...]
    """Of the servers, in their order; not all 0."""


@dataclass(frozen=True, slots=True, eq=False)
class Route:
    """A ModelRoute, compiled."""

    key: ObjectKey
    name: str
    """`namespace/name`, for logs and metrics."""
    model_name: str
    adapters: tuple[str, ...]
    created_at_ms: int
    owned_by: str
    rules: tuple[Rule, ...]
    limit: TokenLimit | None


Candidates = tuple[tuple[Route, Rule], ...]
"""The rules that may serve a name, with their routes, in the order they are tried."""


@dataclass(frozen=True, slots=True, eq=False)
class Server:
    """A ModelServer, compiled."""

    key: ObjectKey
    name: str
    """`namespace/name`, for logs and metrics."""
    target: ObjectKey | None
    model: str | None
    protocol: str
    timeout_ms: int | None
    retry_attempts: int
    retry_interval_ms: int
    endpoints: tuple[EndpointEntry, ...]
    disaggregation: Disaggregation | None = None


@dataclass(frozen=True, slots=True)
class _Part:
    digest: str
    revision: int
    content: Route | Server


class TableIndexes:
    """By which names rules are found: the oldest route first, then by namespace and name."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self.by_model: dict[str, Candidates] = {}
        self.by_adapter: dict[str, Candidates] = {}
        self.names: dict[str, Route] = {}
        """Every name that clients may use, sorted, with the first route that lists it."""
        names: dict[str, Route] = {}
        for route in sorted(routes, key=lambda route: (route.created_at_ms, route.name)):
            candidates = tuple((route, rule) for rule in route.rules)
            if route.model_name:
                self.by_model[route.model_name] = (
                    self.by_model.get(route.model_name, ()) + candidates
                )
                names.setdefault(route.model_name, route)
            for adapter in dict.fromkeys(route.adapters):
                self.by_adapter[adapter] = self.by_adapter.get(adapter, ()) + candidates
                names.setdefault(adapter, route)
        self.names = dict(sorted(names.items()))


class RoutingTable:
    """All routes and servers at one moment; never changed once made."""

    __slots__ = ("_digest", "_parts", "expected_digest", "indexes", "revision", "routes", "servers")

    def __init__(self) -> None:
        """The empty table, before the first message."""
        self._parts: dict[ObjectKey, _Part] = {}
        self._digest = ""
        self.revision = 0
        """The highest that was seen."""
        self.expected_digest = ""
        """Digest over all parts, as the newest message tells it; empty before the first."""
        self.routes: tuple[Route, ...] = ()
        """In no particular order; the same object as before where no route changed."""
        self.servers: dict[ObjectKey, Server] = {}
        self.indexes = TableIndexes(())

    @property
    def digest(self) -> str:
        """Digest over the parts that are held, as `RoutePublished` defines it."""
        if not self._digest:
            parts = sorted([str(key), part.digest] for key, part in self._parts.items())
            self._digest = digest(parts)
        return self._digest

    @property
    def is_complete(self) -> bool:
        """True when the parts are exactly those that the publisher has."""
        return bool(self.expected_digest) and self.digest == self.expected_digest

    def with_parts(self, published: Iterable[tuple[ObjectKey, RoutePublished]]) -> "RoutingTable":
        """The table after these messages; one that is older than the part held is passed over."""
        table = RoutingTable()
        table._parts = dict(self._parts)
        table.revision, table.expected_digest = self.revision, self.expected_digest
        for key, message in published:
            held = table._parts.get(key)
            if held is None or message.revision >= held.revision:
                _replace(table._parts, key, message)
            if message.revision >= table.revision:
                table.revision, table.expected_digest = message.revision, message.table_digest
        table._take_contents(self)
        return table

    def _take_contents(self, earlier: "RoutingTable") -> None:
        contents = [(key, part.content) for key, part in self._parts.items()]
        self.servers = {key: content for key, content in contents if isinstance(content, Server)}
        routes = tuple(content for _, content in contents if isinstance(content, Route))
        if set(routes) == set(earlier.routes):
            self.routes, self.indexes = earlier.routes, earlier.indexes
        else:
            self.routes, self.indexes = routes, TableIndexes(routes)


def _replace(parts: dict[ObjectKey, _Part], key: ObjectKey, message: RoutePublished) -> None:
    held = parts.get(key)
    if message.deleted or not (message.route or message.server):
        parts.pop(key, None)
    elif held is not None and held.digest == message.digest:
        parts[key] = _Part(held.digest, message.revision, held.content)
    elif message.route:
        parts[key] = _Part(message.digest, message.revision, _compile_route(key, message.route))
    elif message.server:
        parts[key] = _Part(message.digest, message.revision, _compile_server(key, message.server))


def _compile_route(key: ObjectKey, entry: RouteEntry) -> Route:
    rules = tuple(
        Rule(
            name=rule.name,
            conditions=compile_conditions(rule.match),
            servers=tuple(ObjectKey.parse(target.server) for target in rule.targets),
            weights=tuple(max(0, target.weight) for target in rule.targets),
        )
        for rule in entry.rules
        if any(target.weight > 0 for target in rule.targets)
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
    )


def _compile_server(key: ObjectKey, entry: ServerEntry) -> Server:
    return Server(
        key=key,
        name=f"{key.namespace}/{key.name}",
        target=ObjectKey.parse(entry.target) if entry.target else None,
        model=entry.model,
        protocol=entry.protocol,
        timeout_ms=entry.timeout_ms,
        retry_attempts=entry.retry_attempts,
        retry_interval_ms=entry.retry_interval_ms,
        endpoints=tuple(entry.endpoints),
        disaggregation=disaggregation_of(entry),
    )
