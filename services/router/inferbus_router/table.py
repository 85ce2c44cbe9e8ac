"""The routing table: an immutable snapshot of the parts that the router-config-publisher
publishes.

Built part by part from `RoutePublished`; the compiled form of a part that didn't change is carried
over to the next snapshot as the same object. Invariant: two tables of the same parts have the same
digest and route alike, whatever order the parts came in.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from inferbus_contracts.events.route import (
    EndpointEntry,
    RouteEntry,
    RoutePublished,
    ServerEntry,
    TokenLimit,
)
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.table_digest import part_pair, table_digest
from inferbus_router.matching import Conditions, compile_conditions
from inferbus_router.table_indexes import TableIndexes


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

    @property
    def names(self) -> tuple[str, ...]:
        """Those that clients may use; the empty one among them where it serves adapters alone."""
        return (self.model_name, *self.adapters)


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


@dataclass(frozen=True, slots=True)
class _Part:
    digest: str
    revision: int
    pair: bytes
    """What it contributes to the table's digest."""
    content: Route | Server


@dataclass(frozen=True, slots=True, eq=False)
class TableChange:
    """What a table has that the one it was made from has not, and the other way round."""

    base: object
    """`identity` of the table it was made from."""
    gone: tuple[Route, ...] = ()
    """Routes that are no more, or have another form now."""
    new: tuple[Route, ...] = ()
    """Routes that are new, or have another form than before."""
    servers: tuple[ObjectKey, ...] = ()
    """Servers that came, went or changed."""

    @property
    def has_routes(self) -> bool:
        """Whether any route differs."""
        return bool(self.gone or self.new)


def _candidates_of(route: Route) -> Candidates:
    return tuple((route, rule) for rule in route.rules)


class RoutingTable:
    """All routes and servers at one moment; never changed once made."""

    __slots__ = (
        "_by_key",
        "_digest",
        "_parts",
        "change",
        "expected_digest",
        "identity",
        "indexes",
        "revision",
        "routes",
        "servers",
    )

    def __init__(self) -> None:
        """The empty table, before the first message."""
        self._parts: dict[ObjectKey, _Part] = {}
        self._digest = ""
        self.identity = object()
        """Tells this table from others, and keeps none of them alive."""
        self.change = TableChange(None)
        """How it differs from the one it was made from."""
        self.revision = 0
        """The highest that was seen."""
        self.expected_digest = ""
        """Digest over all parts, as the newest message tells it; empty before the first."""
        self.routes: tuple[Route, ...] = ()
        """In no particular order; the same object as before where no route changed."""
        self.servers: dict[ObjectKey, Server] = {}
        self.indexes = TableIndexes(_candidates_of)
        self._by_key: dict[ObjectKey, Route] = {}

    @property
    def digest(self) -> str:
        """Digest over the parts that are held, as `RoutePublished` defines it."""
        if not self._digest:
            self._digest = table_digest(part.pair for part in self._parts.values())
        return self._digest

    @property
    def is_complete(self) -> bool:
        """True when the parts are exactly those that the publisher has."""
        return bool(self.expected_digest) and self.digest == self.expected_digest

    def with_parts(self, published: Iterable[tuple[ObjectKey, RoutePublished]]) -> "RoutingTable":
        """The table after these messages; one that is older than the part held is passed over.

        Costs as much as what changed: the rest is carried over without being looked at.
        """
        table = RoutingTable()
        table._parts = self._parts.copy()
        table.revision, table.expected_digest = self.revision, self.expected_digest
        touched: set[ObjectKey] = set()
        for key, message in published:
            held = table._parts.get(key)
            if held is None or message.revision >= held.revision:
                _replace(table._parts, held, key, message)
                touched.add(key)
            table._note(message)
        table._follow(self, touched)
        return table

    def replaced_by(self, published: Iterable[tuple[ObjectKey, RoutePublished]]) -> "RoutingTable":
        """The table of these messages alone, whatever the revisions of the parts held.

        For a log that begins anew: its revisions need not go on where the old ones ended.
        """
        table = RoutingTable()
        for key, message in published:
            _replace(table._parts, self._parts.get(key), key, message)
            table._note(message)
        table._follow(self, self._parts.keys() | table._parts.keys())
        return table

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

    def _note(self, message: RoutePublished) -> None:
        if message.revision >= self.revision:
            self.revision, self.expected_digest = message.revision, message.table_digest

    def _follow(self, earlier: "RoutingTable", touched: Iterable[ObjectKey]) -> None:
        """Take over the contents of `earlier`, but for the parts that were touched."""
        gone: list[Route] = []
        new: list[Route] = []
        servers: list[ObjectKey] = []
        for key in touched:
            before, after = _content(earlier._parts.get(key)), _content(self._parts.get(key))
            if before is after:
                continue
            if isinstance(before, Route):
                gone.append(before)
            if isinstance(after, Route):
                new.append(after)
            if isinstance(before, Server) or isinstance(after, Server):
                servers.append(key)
        self.change = TableChange(earlier.identity, tuple(gone), tuple(new), tuple(servers))
        self._take_servers(earlier)
        self._take_routes(earlier)

    def _take_servers(self, earlier: "RoutingTable") -> None:
        self.servers = earlier.servers
        if not self.change.servers:
            return
        self.servers = earlier.servers.copy()
        for key in self.change.servers:
            content = _content(self._parts.get(key))
            if isinstance(content, Server):
                self.servers[key] = content
            else:
                del self.servers[key]

    def _take_routes(self, earlier: "RoutingTable") -> None:
        self._by_key, self.routes = earlier._by_key, earlier.routes
        self.indexes = earlier.indexes
        if not self.change.has_routes:
            return
        self._by_key = earlier._by_key.copy()
        for route in self.change.gone:
            del self._by_key[route.key]
        for route in self.change.new:
            self._by_key[route.key] = route
        self.routes = tuple(self._by_key.values())
        self.indexes = earlier.indexes.after(self.change.gone, self.change.new)


def _content(part: _Part | None) -> Route | Server | None:
    return part.content if part else None


def _replace(
    parts: dict[ObjectKey, _Part], held: _Part | None, key: ObjectKey, message: RoutePublished
) -> None:
    """`held` is what is known of the key: its compiled form is kept where its digest stayed."""
    content: Route | Server
    if message.deleted or not (message.route or message.server):
        parts.pop(key, None)
        return
    if held is not None and held.digest == message.digest:
        parts[key] = _Part(held.digest, message.revision, held.pair, held.content)
        return
    if message.route:
        content = _compile_route(key, message.route)
    else:
        assert message.server is not None
        content = _compile_server(key, message.server)
    pair = part_pair(key, message.digest)
    parts[key] = _Part(message.digest, message.revision, pair, content)


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
    )
