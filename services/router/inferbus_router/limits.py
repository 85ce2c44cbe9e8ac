"""The token limiters of all routes, kept in step with the table.

Invariant: a route whose declared limit didn't change keeps its limiter, and a changed limit keeps
the balances, so that touching a route never hands out a fresh quota (routing spec, defect 7); there
is a link to each Redis server that a route names, and to no other.
"""

from collections.abc import Callable, Iterable
from typing import Protocol

from inferbus_contracts.events.route import TokenLimit
from inferbus_contracts.keys import ObjectKey
from inferbus_router.policy_limits import RouteLimiter
from inferbus_router.shared_limits import Link, SharedLimiter
from inferbus_router.table import Route


class ClosableLink(Link, Protocol):
    """A link that somebody has to let go of."""

    async def flush(self) -> None:
        """Wait until everything is charged, within bounds."""
        ...

    def stop(self) -> None:
        """It isn't needed any more."""
        ...


Limiter = RouteLimiter | SharedLimiter


class Limiters:
    """One limiter per route that declares a limit."""

    def __init__(self, connect: Callable[[str], ClosableLink]) -> None:
        """`connect` makes a link to the server at an address."""
        self._connect = connect
        self._by_route: dict[ObjectKey, Limiter] = {}
        self._links: dict[str, ClosableLink] = {}

    def of(self, route: Route) -> Limiter | None:
        """The limiter of a route; None where it declares no limit."""
        return self._by_route.get(route.key) if route.limit else None

    def items(self) -> list[tuple[ObjectKey, Limiter]]:
        """All of them, with their routes."""
        return list(self._by_route.items())

    def sync(self, routes: Iterable[Route], now_ms: int) -> None:
        """Follow the table."""
        limited = [(route, route.limit) for route in routes if route.limit is not None]
        self._by_route = {
            route.key: self._limiter(route, limit, now_ms) for route, limit in limited
        }
        used = {limit.redis for _, limit in limited}
        for address in self._links.keys() - used:
            self._links.pop(address).stop()

    def _limiter(self, route: Route, limit: TokenLimit, now_ms: int) -> Limiter:
        limiter = self._by_route.get(route.key)
        is_shared = isinstance(limiter, SharedLimiter)
        if limiter is None or is_shared != bool(limit.redis):
            return self._made(route, limit)
        if isinstance(limiter, SharedLimiter):
            limiter.link = self._link(limit.redis or "")
        limiter.change(limit, now_ms)
        return limiter

    def _made(self, route: Route, limit: TokenLimit) -> Limiter:
        if not limit.redis:
            return RouteLimiter(limit)
        name = route.model_name or route.adapters[0]
        return SharedLimiter(limit, name, self._link(limit.redis))

    def _link(self, address: str) -> ClosableLink:
        link = self._links.get(address)
        if link is None:
            link = self._links[address] = self._connect(address)
        return link

    async def flush(self) -> None:
        """Wait until what requests used is charged, within bounds."""
        for link in self._links.values():
            await link.flush()

    def stop(self) -> None:
        """Let go of all links."""
        for link in self._links.values():
            link.stop()
        self._links.clear()

    @property
    def silent_servers(self) -> int:
        """Servers that don't answer."""
        return sum(not link.is_up for link in self._links.values())

    @property
    def fallbacks(self) -> int:
        """Requests that were decided about without the server, by the routes that there are."""
        shared = (each for each in self._by_route.values() if isinstance(each, SharedLimiter))
        return sum(limiter.fallbacks for limiter in shared)
