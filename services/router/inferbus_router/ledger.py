"""What all requests of one router are booked in: metrics, demand, token limits and the access log.

Invariant: it holds entries only for what the routing table names, so that it can't grow by what
clients send.
"""

from collections.abc import Callable

from inferbus_router.demand import DemandAccumulator
from inferbus_router.limits import Limiter, Limiters
from inferbus_router.policy_tokens import TokenScale
from inferbus_router.record import NOWHERE, Destination, RequestRecord
from inferbus_router.table import Route, RoutingTable
from inferbus_router.traffic import Traffic, path_label


class Charge:
    """What is needed to charge requests for one name to the limit of a route."""

    __slots__ = ("destination", "limiter", "scale")

    def __init__(self, limiter: Limiter | None, scale: TokenScale, destination: Destination):
        self.limiter = limiter
        """None: nothing limits them."""
        self.scale = scale
        self.destination = destination
        """As far as it is known before a server was drawn."""


class Ledger:
    """The books of one router."""

    def __init__(
        self,
        router: str,
        now_ms: int,
        log: Callable[[RequestRecord], None],
        limiters: Limiters,
    ) -> None:
        """`router` is its name in demand; `log` gets every record that has ended."""
        self.traffic = Traffic()
        self.demand = DemandAccumulator(router, now_ms)
        self.limiters = limiters
        self.log = log
        self._scales: dict[str, TokenScale] = {}
        self._charges: dict[tuple[Route, str], Charge] = {}
        """By route and the name that clients use; made anew with every change of routes."""

    def scale(self, model: str) -> TokenScale:
        """What was learned about the tokens of a model that a route serves."""
        scale = self._scales.get(model)
        if scale is None:
            scale = self._scales[model] = TokenScale()
        return scale

    def charge(self, route: Route, model: str) -> Charge:
        """How requests for a model, which the route serves, are charged to its limit."""
        key = (route, model)
        charge = self._charges.get(key)
        if charge is None:
            limiter, scale = self.limiters.of(route), self.scale(model)
            charge = Charge(limiter, scale, Destination(model, route.name))
            self._charges[key] = charge
        return charge

    def book(self, record: RequestRecord) -> None:
        """Count and log a request that ended without an account: the router answered it itself."""
        path = path_label(record.request.head.path) if record.request else "other"
        outcome = self.traffic.to(NOWHERE).outcome(path, record.status, record.error_type)
        outcome.count(record.ended_ms - record.arrived_ms, 0, 0)
        self.log(record)

    def follow(self, table: RoutingTable, now_ms: int) -> None:
        """Keep limits and counters of the routes that there are now."""
        self.limiters.sync(table.routes, now_ms)
        self._charges.clear()
        gone, new = table.change.gone, table.change.new
        self.traffic.forget_routes({route.name for route in gone} - {route.name for route in new})
        names = {name for route in gone for name in route.names if name}
        models = names - table.indexes.names.keys()
        if models:
            self.traffic.forget_models(models)
        for model in models:
            self._scales.pop(model, None)
