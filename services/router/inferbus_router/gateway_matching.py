"""Which rule serves a request that came in where Gateways listen (routing spec 2.7).

A ModelRoute comes first for what is asked under `/v1/`; an HTTPRoute serves everything else, and
what no ModelRoute wants. Invariant: a request that an HTTPRoute takes carries what its engine is
asked for, also when it is matched again.
"""

from typing import Protocol

from inferbus_router.core import match_request
from inferbus_router.errors import no_eligible_backend
from inferbus_router.gateways import host_name
from inferbus_router.http_routes import HttpCandidate, rewritten_target
from inferbus_router.matching import first_value
from inferbus_router.request import Request, RequestHead, Rewritten
from inferbus_router.table import Route, RoutingTable, Rule

MODEL_PATHS = "/v1/"


class Arrival(Protocol):
    """The connection that a request came by."""

    @property
    def local_port(self) -> int:
        """Where the client connected."""
        ...


def match_arrival(
    table: RoutingTable, model: str, request: Request, arrival: Arrival
) -> tuple[Route, Rule] | None:
    """The rule for a request; None where there is none.

    On a port that no Gateway claims the routers' own rules hold. Raises `RequestError` (503) where
    the HTTPRoute that takes it leads nowhere.
    """
    head, gateways = request.head, table.gateways
    if gateways is None:
        return match_request(table, model, head)
    request.rewritten = None
    port = arrival.local_port
    if not gateways.claims(port):
        return match_request(table, model, head)
    host = host_of(head)
    listener = gateways.listener(port, host)
    if listener is None:
        return None
    if head.path.startswith(MODEL_PATHS):
        found = match_request(table, model, head, listener)
        if found is not None:
            return found
    candidate = table.http.find(listener, host, head)
    return None if candidate is None else _taken(candidate, request)


def is_routed(table: RoutingTable, head: RequestHead, arrival: Arrival) -> bool:
    """Whether an HTTPRoute takes a request for a path of its own."""
    if table.gateways is None:
        return False
    host = host_of(head)
    listener = table.gateways.listener(arrival.local_port, host)
    return listener is not None and table.http.find(listener, host, head) is not None


def host_of(head: RequestHead) -> str:
    """The host that a request is for."""
    return host_name(first_value(head.headers, b"host").encode("latin-1"))


def _taken(candidate: HttpCandidate[Route, Rule], request: Request) -> tuple[Route, Rule]:
    route, rule = candidate.route, candidate.rule
    if not any(rule.weights):
        raise no_eligible_backend(route.name)
    if rule.rewrite is not None:
        request.rewritten = Rewritten(
            rewritten_target(rule.rewrite, candidate.match, request.head.target),
            (rule.rewrite.hostname or "").encode(),
        )
    return route, rule
