"""The router's own pages on a port of their own: /metrics, /healthz and /readyz.

Invariant: the page of metrics is never reachable on the port that clients use.
"""

from collections.abc import Callable, Iterable

from inferbus_router.errors import unknown_path
from inferbus_router.http_messages import Page
from inferbus_router.operations import Operations
from inferbus_router.operator_pages import OperatorPages
from inferbus_router.pages import message_page
from inferbus_router.router import Router

Gauges = Callable[[], Iterable[tuple[str, str, float]]]
"""(name without prefix, help, value) of what isn't counted per request."""


class AdminPages(OperatorPages):
    """Metrics and health, and the debug endpoint where it is beside them."""

    def __init__(
        self,
        router: Router,
        gauges: Gauges,
        operations: Operations,
    ) -> None:
        self._router = router
        self._gauges = gauges
        self._scheduling = operations.configuration.scheduling
        self._debug = operations.debug_beside_metrics

    def page(self, path: str) -> Page:
        """See `OperatorPages`."""
        if path == "/metrics":
            return self._metrics()
        if path == "/healthz":
            return message_page(200, "ok")
        if path == "/readyz":
            return self._router.readiness()
        if self._debug is not None and path.startswith("/debug"):
            return self._debug.page(path)
        raise unknown_path(path)

    def _metrics(self) -> Page:
        # the first scrape pays for the library, not the start of every router
        from inferbus_router.metrics import metrics_page
        from inferbus_router.metrics_endpoints import endpoint_families
        from inferbus_router.metrics_scheduling import scheduling_families

        sources = [
            lambda: endpoint_families(self._router.state.fleet),
            lambda: scheduling_families(self._scheduling),
        ]
        queues = self._router.state.queues
        if queues is not None:
            from inferbus_router.queue_metrics import queue_families

            sources.append(lambda: queue_families(queues))
        body, content_type = metrics_page(self._router.ledger.traffic, self._gauges, sources)
        return Page(200, body, content_type)
