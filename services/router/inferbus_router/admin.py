"""The router's own pages on a port of their own: /metrics, /healthz and /readyz.

Served by the same protocol as inference, so that the router needs no web framework. Invariant: the
page of metrics is never reachable on the port that clients use.
"""

from collections.abc import Callable, Iterable

from inferbus_router.errors import RequestError, method_not_allowed, unknown_path
from inferbus_router.http_messages import Page, error_page
from inferbus_router.pages import message_page
from inferbus_router.request import Request
from inferbus_router.router import Router
from inferbus_router.server_protocol import RunningRequest, ServerProtocol

Gauges = Callable[[], Iterable[tuple[str, str, float]]]
"""(name without prefix, help, value) of what isn't counted per request."""


class AdminPages:
    """Answers at once, always; a `RequestHandler`."""

    def __init__(self, router: Router, gauges: Gauges) -> None:
        self._router = router
        self._gauges = gauges

    def handle(self, client: ServerProtocol, request: Request) -> RunningRequest | None:
        """Serve a page."""
        try:
            page = self._page(request)
        except RequestError as error:
            page = error_page(error)
        client.answer(request, page)
        return None

    def refused(self, request: Request | None, error: RequestError) -> None:
        """Nothing is counted here: only operators come."""
        del request, error

    def _page(self, request: Request) -> Page:
        method, path = request.head.method, request.head.path
        if method not in (b"GET", b"HEAD"):
            raise method_not_allowed(method.decode(), path, b"GET, HEAD")
        if path == "/metrics":
            return self._metrics()
        if path == "/healthz":
            return message_page(200, "ok")
        if path == "/readyz":
            return self._router.readiness()
        raise unknown_path(path)

    def _metrics(self) -> Page:
        # the first scrape pays for the library, not the start of every router
        from inferbus_router.metrics import metrics_page

        body, content_type = metrics_page(
            self._router.ledger.traffic, self._gauges, self._router.state.queues
        )
        return Page(200, body, content_type)
