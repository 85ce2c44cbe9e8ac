"""What the router remembers beside the table: what goes on at endpoints, and whose turn it is.

Invariant: an endpoint that stays keeps its load, health and connections over any number of tables,
whichever servers name it; so does a rule its position in the cycle of its weights.
"""

from collections.abc import Callable, Collection, Sequence
from typing import Generic, TypeVar

from inferbus_contracts.events.route import EndpointEntry
from inferbus_contracts.keys import ObjectKey
from inferbus_router.policy_affinity import Bindings
from inferbus_router.policy_ask import Ask
from inferbus_router.policy_choice import choose
from inferbus_router.policy_load import EndpointLoad
from inferbus_router.policy_prefixes import PrefixIndex
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
        bindings: Bindings[EndpointT] | None = None,
    ) -> None:
        """`endpoints` are the server's, in their order; `bindings` those of its sessions."""
        self.server = server
        self.bindings = bindings
        self._prefixes = prefixes
        self.endpoints = endpoints
        self.candidates = tuple(
            endpoint
            for entry, endpoint in zip(server.endpoints, endpoints, strict=True)
            if entry.ready and not entry.draining and entry.role != "prefill"
        )
        """Ready, not draining; prefill endpoints take no requests of their own."""
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
        return choose(candidates, ask, tried, now_ms, self._turn)


class Fleet(Generic[EndpointT]):
    """All servers and endpoints of the current table."""

    def __init__(self, make_endpoint: Callable[[EndpointEntry, Transport], EndpointT]) -> None:
        """`make_endpoint` makes an endpoint of an entry and its server's transport."""
        self._make_endpoint = make_endpoint
        self.prefixes: PrefixIndex[EndpointLoad] = PrefixIndex()
        self._endpoints: dict[EndpointId, EndpointT] = {}
        self._servers: dict[ObjectKey, ServerState[EndpointT]] = {}
        self._routes: tuple[Route, ...] = ()
        self._draws: dict[Rule, SmoothWeights] = {}

    def sync(self, table: RoutingTable) -> list[EndpointT]:
        """Follow the table; returns the endpoints that are gone."""
        if table.routes is not self._routes:
            self._routes = table.routes
            self._draws = {
                rule: self._draws.get(rule) or SmoothWeights(rule.weights)
                for route in table.routes
                for rule in route.rules
            }
        earlier = self._servers
        self._servers = {
            key: self._state(earlier.get(key), server) for key, server in table.servers.items()
        }
        return self._take_gone()

    def _state(
        self, known: ServerState[EndpointT] | None, server: Server
    ) -> ServerState[EndpointT]:
        if known is not None and known.server is server:
            return known
        endpoints = tuple(self._endpoint(entry, server.transport) for entry in server.endpoints)
        return ServerState(server, endpoints, self.prefixes, _bindings(known, server))

    def _endpoint(self, entry: EndpointEntry, transport: Transport) -> EndpointT:
        key = (entry.pod, entry.address, entry.port, transport)
        endpoint = self._endpoints.get(key)
        if endpoint is None:
            endpoint = self._endpoints[key] = self._make_endpoint(entry, transport)
            endpoint.prefixes = self.prefixes
        return endpoint

    def _take_gone(self) -> list[EndpointT]:
        used = {endpoint for state in self._servers.values() for endpoint in state.endpoints}
        gone = {key: each for key, each in self._endpoints.items() if each not in used}
        for key in gone:
            self.prefixes.drop(self._endpoints.pop(key))
        return list(gone.values())

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
