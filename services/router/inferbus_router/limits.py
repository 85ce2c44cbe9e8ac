"""The token limiters of all routes, kept in step with the table.

Invariant: a route whose declared limit didn't change keeps its limiter, and a changed limit keeps
the balances, so that touching a route never hands out a fresh quota (routing spec, defect 7).
"""

from collections.abc import Iterable

from inferbus_contracts.keys import ObjectKey
from inferbus_router.policy_limits import RouteLimiter
from inferbus_router.table import Route


class Limiters:
    """One limiter per route that declares a limit."""

    def __init__(self) -> None:
        self._by_route: dict[ObjectKey, RouteLimiter] = {}

    def of(self, route: Route) -> RouteLimiter | None:
        """The limiter of a route; None where it declares no limit."""
        return self._by_route.get(route.key) if route.limit else None

    def sync(self, routes: Iterable[Route], now_ms: int) -> None:
        """Follow the table."""
        kept: dict[ObjectKey, RouteLimiter] = {}
        for route in routes:
            if route.limit is None:
                continue
            limiter = self._by_route.get(route.key)
            if limiter is None:
                limiter = RouteLimiter(route.limit, now_ms)
            elif limiter.declared != route.limit:
                limiter.change(route.limit, now_ms)
            kept[route.key] = limiter
        self._by_route = kept
