"""What the router remembers beside the table: what goes on at endpoints, and whose turn it is.

Invariant: an endpoint that stays keeps its load, health and connections over any number of tables,
whichever servers name it; so does a rule its position in the cycle of its weights.
"""

from collections.abc import Callable, Collection
from typing import Generic, TypeVar

from inferbus_contracts.events.route import EndpointEntry
from inferbus_contracts.keys import ObjectKey
from inferbus_router.pairs import pairs_of
from inferbus_router.policy_choice import EndpointLoad, choose
from inferbus_router.policy_weights import SmoothWeights
from inferbus_router.table import Route, RoutingTable, Rule, Server

EndpointT = TypeVar("EndpointT", bound=EndpointLoad)

EndpointId = tuple[str, str, int, str]
"""(pod, address, port, protocol)."""


class ServerState(Generic[EndpointT]):
    """A model server and the endpoints that take requests for it."""

    def __init__(self, server: Server, endpoints: tuple[EndpointT, ...]) -> None:
        """`endpoints` are the server's, in their order."""
        self.server = server
        self.endpoints = endpoints
        known = tuple(zip(server.endpoints, endpoints, strict=True))
        self.pairs = pairs_of(known)
        self.candidates = (
            tuple(each for entry, each in known if entry.ready and not entry.draining)
            if self.pairs is None
            else self.pairs.decodes
        )
        """Ready, not draining; of endpoints with roles the decode ones that have a partner."""
        self._turn = 0

    def choose(self, tried: Collection[EndpointT], now_ms: int) -> EndpointT | None:
        """The endpoint for the next request (`policy_choice`); None when none is ready."""
        candidates = self.candidates
        if len(candidates) == 1:
            return candidates[0]
        self._turn += 1
        return choose(candidates, self._turn, tried, now_ms)


class Fleet(Generic[EndpointT]):
    """All servers and endpoints of the current table."""

    def __init__(self, make_endpoint: Callable[[EndpointEntry, str], EndpointT]) -> None:
        """`make_endpoint` makes an endpoint of an entry and its server's protocol."""
        self._make_endpoint = make_endpoint
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
        endpoints = tuple(self._endpoint(entry, server.protocol) for entry in server.endpoints)
        return ServerState(server, endpoints)

    def _endpoint(self, entry: EndpointEntry, protocol: str) -> EndpointT:
        key = (entry.pod, entry.address, entry.port, protocol)
        endpoint = self._endpoints.get(key)
        if endpoint is None:
            endpoint = self._endpoints[key] = self._make_endpoint(entry, protocol)
        return endpoint

    def _take_gone(self) -> list[EndpointT]:
        used = {endpoint for state in self._servers.values() for endpoint in state.endpoints}
        gone = {key: each for key, each in self._endpoints.items() if each not in used}
        for key in gone:
            del self._endpoints[key]
        return list(gone.values())

    def endpoints(self) -> list[EndpointT]:
        """All that the table names."""
        return list(self._endpoints.values())

    def server(self, key: ObjectKey) -> ServerState[EndpointT] | None:
        """The state of a server; None where the table has none of that name."""
        return self._servers.get(key)

    def draw(self, rule: Rule) -> ServerState[EndpointT] | None:
        """The target whose turn it is among those with a ready endpoint; None when none has."""
        if len(rule.servers) == 1:
            state = self._servers.get(rule.servers[0])
            return state if state is not None and state.candidates else None
        states = [self._servers.get(key) for key in rule.servers]
        index = self._draws[rule].draw([bool(state and state.candidates) for state in states])
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
