"""What the router remembers beside the table: what goes on at endpoints, and whose turn it is.

Invariant: an endpoint that stays keeps its load, health and connections over any number of tables,
whichever servers name it; so does a rule its position in the cycle of its weights.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Generic, TypeVar

from inferbus_contracts.events.route import EndpointEntry
from inferbus_contracts.keys import ObjectKey
from inferbus_router.pairs import pairs_of
from inferbus_router.policy_affinity import Bindings
from inferbus_router.policy_ask import Ask
from inferbus_router.policy_choice import choose
from inferbus_router.policy_load import EndpointLoad, SentPrompts
from inferbus_router.policy_prefixes import PrefixIndex
from inferbus_router.policy_speed import FleetSpeed
from inferbus_router.policy_weights import SmoothWeights
from inferbus_router.table import Route, RoutingTable, Rule, Server
from inferbus_router.transport import Transport

EndpointT = TypeVar("EndpointT", bound=EndpointLoad)

EndpointId = tuple[str, str, int, Transport]
"""(pod, address, port, how it is spoken to)."""


class ServerState(Generic[EndpointT]):
    """A model server and the endpoints that take requests for it."""

    def __init__(
        self,
        server: Server,
        endpoints: tuple[EndpointT, ...],
        prefixes: PrefixIndex[EndpointLoad],
        speed: FleetSpeed,
        bindings: Bindings[EndpointT] | None = None,
    ) -> None:
        """`endpoints` are the server's, in their order; `speed` is theirs, `bindings` those of
        its sessions.
        """
        self.speed = speed
        self.server = server
        self.bindings = bindings
        self._prefixes = prefixes
        self.endpoints = endpoints
        known = tuple(zip(server.endpoints, endpoints, strict=True))
        self.pairs = pairs_of(known)
        self.candidates = (
            tuple(each for entry, each in known if entry.ready and not entry.draining)
            if self.pairs is None
            else self.pairs.decodes
        )
        """Ready, not draining; of endpoints with roles the decode ones that have a partner."""
        self._members = frozenset(self.candidates)
        self._turn = 0

    def admits(self, now_ms: int) -> bool:
        """Whether an endpoint is ready that isn't left alone because it keeps failing."""
        return any(each.health.admits(now_ms) for each in self.candidates)

    def choose(
        self,
        ask: Ask,
        tried: Collection[EndpointT],
        now_ms: int,
        among: Sequence[EndpointT] | None = None,
    ) -> EndpointT | None:
        """The endpoint for the next request (`policy_choice`); None when none is ready.

        `among`: only some of the candidates, where others have been ruled out.
        """
        candidates = self.candidates if among is None else among
        if self.bindings is not None and ask.session is not None:
            bound = self.bindings.endpoint(ask.session, candidates, tried, now_ms)
            if bound is not None:
                return bound
        if len(candidates) == 1:
            return candidates[0]
        self._turn += 1
        if not ask.is_hashed:
            ask.look_up(self._prefixes)
        return choose(candidates, ask, tried, now_ms, self._turn, self._members)


class Fleet(Generic[EndpointT]):
    """All servers and endpoints of the current table."""

    def __init__(self, make_endpoint: Callable[[EndpointEntry, Transport], EndpointT]) -> None:
        """`make_endpoint` makes an endpoint of an entry and its server's transport."""
        self._make_endpoint = make_endpoint
        self.prefixes: PrefixIndex[EndpointLoad] = PrefixIndex()
        self._endpoints: dict[EndpointId, EndpointT] = {}
        self._uses: dict[EndpointId, int] = {}
        """How many entries of servers name each endpoint."""
        self.by_name: dict[str, EndpointLoad] = {}
        """Endpoints by what routers call them."""
        self._sent_prompts: SentPrompts | None = None
        self._servers: dict[ObjectKey, ServerState[EndpointT]] = {}
        self._draws: dict[Rule, SmoothWeights] = {}
        self._followed: object = None
        """Identity of the table that was followed last."""

    def sync(self, table: RoutingTable, now_ms: int) -> list[EndpointT]:
        """Follow the table; returns the endpoints that are gone.

        Costs as much as what changed, where the table was made from the one followed last.
        """
        if table.change.base is self._followed:
            gone, new, servers = table.change.gone, table.change.new, table.change.servers
            self._follow_routes(gone, new)
        else:
            servers = tuple(self._servers.keys() | table.servers.keys())
            kept = {rule: None for route in table.routes for rule in route.rules}
            self._draws = {rule: self._draws[rule] for rule in self._draws.keys() & kept}
            self._follow_routes((), table.routes)
        self._followed = table.identity
        unused: dict[EndpointId, None] = {}
        for key in servers:
            self._follow_server(key, table.servers.get(key), unused, now_ms)
        return [self._dropped(key) for key in unused if not self._uses.get(key)]

    def _follow_routes(self, gone: Iterable[Route], new: Iterable[Route]) -> None:
        for route in gone:
            for rule in route.rules:
                del self._draws[rule]
        for route in new:
            for rule in route.rules:
                self._draws.setdefault(rule, SmoothWeights(rule.weights))

    def _follow_server(
        self,
        key: ObjectKey,
        server: Server | None,
        unused: dict[EndpointId, None],
        now_ms: int,
    ) -> None:
        """Notes in `unused` the endpoints that nobody names for the moment."""
        known = self._servers.pop(key, None)
        if known is not None and known.server is server:
            self._servers[key] = known
            return
        if server is not None:
            self._servers[key] = self._state(known, server, now_ms)
        if known is not None:
            for entry in known.server.endpoints:
                self._release(_endpoint_id(entry, known.server.transport), unused)

    def _state(
        self, known: ServerState[EndpointT] | None, server: Server, now_ms: int
    ) -> ServerState[EndpointT]:
        speed = known.speed if known is not None else FleetSpeed()
        endpoints = tuple(self._used(entry, server.transport, speed) for entry in server.endpoints)
        state = ServerState(server, endpoints, self.prefixes, speed, _bindings(known, server))
        if known is not None and known.candidates:
            for newcomer in set(state.candidates).difference(known.candidates):
                newcomer.ready_since(now_ms)
        return state

    def _used(self, entry: EndpointEntry, transport: Transport, speed: FleetSpeed) -> EndpointT:
        key = _endpoint_id(entry, transport)
        endpoint = self._endpoints.get(key)
        if endpoint is None:
            endpoint = self._endpoints[key] = self._make_endpoint(entry, transport)
            endpoint.prefixes, endpoint.fleet_speed = self.prefixes, speed
            endpoint.sent_prompts = self._sent_prompts
            self.by_name[endpoint.name] = endpoint
        self._uses[key] = self._uses.get(key, 0) + 1
        return endpoint

    def _release(self, key: EndpointId, unused: dict[EndpointId, None]) -> None:
        self._uses[key] -= 1
        if not self._uses[key]:
            del self._uses[key]
            unused[key] = None

    def _dropped(self, key: EndpointId) -> EndpointT:
        endpoint = self._endpoints.pop(key)
        self.prefixes.drop(endpoint)
        if self.by_name.get(endpoint.name) is endpoint:
            del self.by_name[endpoint.name]
        return endpoint

    def note_prompts(self, sent: SentPrompts | None) -> None:
        """Note prompts that are sent there from now on; None: nowhere."""
        self._sent_prompts = sent
        for endpoint in self._endpoints.values():
            endpoint.sent_prompts = sent

    def endpoints(self) -> list[EndpointT]:
        """All that the table names."""
        return list(self._endpoints.values())

    def servers(self) -> list[ServerState[EndpointT]]:
        """All that the table names."""
        return list(self._servers.values())

    def server(self, key: ObjectKey) -> ServerState[EndpointT] | None:
        """The state of a server; None where the table has none of that name."""
        return self._servers.get(key)

    def draw(self, rule: Rule, now_ms: int) -> ServerState[EndpointT] | None:
        """The target whose turn it is among those with a ready endpoint; None when none has.

        A target all of whose endpoints keep failing is left out as long as another one works
        (routing spec, defect 24).
        """
        if len(rule.servers) == 1:
            state = self._servers.get(rule.servers[0])
            return state if state is not None and state.candidates else None
        return self.draw_other(rule, (), now_ms)

    def draw_other(
        self, rule: Rule, tried: Collection[ObjectKey], now_ms: int
    ) -> ServerState[EndpointT] | None:
        """As `draw`, of a rule that is in the table, without the targets that were tried."""
        states = [
            None if key in tried or (state := self._servers.get(key)) is None else state
            for key in rule.servers
        ]
        ready = [bool(state and state.candidates) for state in states]
        works = [bool(state and state.admits(now_ms)) for state in states]
        index = self._draws[rule].draw(works if any(works) else ready)
        return None if index is None else states[index]

    def to_wait_for(self, rule: Rule) -> ServerState[EndpointT] | None:
        """The target to wait for while none is ready: the first that can be scaled, by weight.

        None where no target exists, or none belongs to a workload that could be started.
        """
        by_weight = sorted(zip(rule.weights, rule.servers, strict=True), key=lambda pair: -pair[0])
        for weight, key in by_weight:
            state = self._servers.get(key)
            if weight and state is not None and state.server.target:
                return state
        return None


def _bindings(known: ServerState[EndpointT] | None, server: Server) -> Bindings[EndpointT] | None:
    """Those that the server had, unless it is told otherwise now."""
    if server.session is None:
        return None
    ttl_ms = server.session.seconds * 1000
    if known is not None and known.bindings is not None and known.bindings.ttl_ms == ttl_ms:
        return known.bindings
    return Bindings(ttl_ms)


def _endpoint_id(entry: EndpointEntry, transport: Transport) -> EndpointId:
    return (entry.pod, entry.address, entry.port, transport)
