"""Pages for operators: answered at once, read only.

Served by the same protocol as inference, so that the router needs no web framework. Invariant: a
page is never counted as a request of a client.
"""

from inferbus_router.errors import RequestError, method_not_allowed
from inferbus_router.http_messages import Page, error_page
from inferbus_router.request import Request
from inferbus_router.server_protocol import RunningRequest, ServerProtocol


class OperatorPages:
    """The pages of one listener; a `RequestHandler`. A subclass says what they are."""

    def page(self, path: str) -> Page:
        """The page under a path; raises `RequestError` 404."""
        raise NotImplementedError

    def handle(self, client: ServerProtocol, request: Request) -> RunningRequest | None:
        """Serve a page."""
        method, path = request.head.method, request.head.path
        try:
            if method not in (b"GET", b"HEAD"):
                raise method_not_allowed(method.decode(), path, b"GET, HEAD")
            page = self.page(path)
        except RequestError as error:
            page = error_page(error)
        client.answer(request, page)
        return None

    def refused(self, request: Request | None, error: RequestError) -> None:
        """Nothing is counted here: only operators come."""
        del request, error
