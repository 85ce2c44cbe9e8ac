"""What all requests of one router are booked in: metrics, demand, token limits and the access log.

Invariant: it holds entries only for what the routing table names, so that it can't grow by what
clients send.
"""

from collections.abc import Callable

from inferbus_router.demand import DemandAccumulator
from inferbus_router.limits import Limiters
from inferbus_router.policy_tokens import TokenScale
from inferbus_router.record import NOWHERE, RequestRecord
from inferbus_router.table import RoutingTable
from inferbus_router.traffic import Traffic, path_label


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

    def scale(self, model: str) -> TokenScale:
        """What was learned about the tokens of a model that a route serves."""
        scale = self._scales.get(model)
        if scale is None:
            scale = self._scales[model] = TokenScale()
        return scale

    def book(self, record: RequestRecord) -> None:
        """Count and log a request that ended without an account: the router answered it itself."""
        path = path_label(record.request.head.path) if record.request else "other"
        outcome = self.traffic.to(NOWHERE).outcome(path, record.status, record.error_type)
        outcome.count(record.ended_ms - record.arrived_ms, 0, 0)
        self.log(record)

    def follow(self, earlier: RoutingTable, table: RoutingTable, now_ms: int) -> None:
        """Keep limits and counters of the routes that there are now."""
        self.limiters.sync(table.routes, now_ms)
        left = {route.name for route in table.routes}
        self.traffic.forget_routes({route.name for route in earlier.routes} - left)
        gone = set(earlier.indexes.names) - set(table.indexes.names)
        self.traffic.forget_models(gone)
        for model in gone:
            self._scales.pop(model, None)
