"""Browsers of other origins: what they may read, and their questions beforehand (Fetch, 3.2).

Only where origins are configured: a router in an intranet must not be usable by whatever page a
colleague opens. Credentials are never allowed for, keys are sent in headers. Invariant: a response
carries the router's own permission or none; an engine's is taken out.
"""

from inferbus_router.heads import HEAD_END, LINE_END, without_headers
from inferbus_router.http_messages import Page
from inferbus_router.matching import first_value
from inferbus_router.request import RequestHead

_ANY = "*"
_PERMISSION = b"access-control-allow-origin"
_ENGINES_OWN = [
    _PERMISSION,
    b"access-control-allow-credentials",
    b"access-control-allow-headers",
    b"access-control-allow-methods",
    b"access-control-expose-headers",
]
_EXPOSED = (b"access-control-expose-headers", b"retry-after, x-request-id")
_SECONDS_TO_REMEMBER = (b"access-control-max-age", b"600")

HeaderLines = list[tuple[bytes, bytes]]


class CrossOrigin:
    """The origins whose pages may call the router."""

    def __init__(self, origins: str) -> None:
        """`origins` is a list with commas, e.g. `https://chat.example`; `*` stands for any."""
        names = [origin.strip() for origin in origins.split(",")]
        self._any = _ANY in names
        self._origins = frozenset(name for name in names if name)

    def permission(self, request: RequestHead) -> HeaderLines:
        """What a response says to let the asking page read it; empty where it may not."""
        origin = first_value(request.headers, b"origin")
        if self._any:
            return [(_PERMISSION, _ANY.encode()), _EXPOSED]
        if origin not in self._origins:
            return [(b"vary", b"origin")]
        return [(_PERMISSION, origin.encode("latin-1")), _EXPOSED, (b"vary", b"origin")]

    def preflight(self, request: RequestHead, allowed: bytes) -> HeaderLines:
        """The answer to the question whether the page may send a request with such headers."""
        permission = self.permission(request)
        if permission[0][0] != _PERMISSION:
            return permission
        headers = first_value(request.headers, b"access-control-request-headers")
        asked = [(b"access-control-allow-headers", headers.encode("latin-1"))] if headers else []
        methods = (b"access-control-allow-methods", allowed)
        return [*permission, methods, *asked, _SECONDS_TO_REMEMBER]

    def permit(self, page: Page, request: RequestHead) -> Page:
        """Add the permission to one of the router's own responses."""
        page.headers = [*page.headers, *self.permission(request)]
        return page

    def replace(self, head: bytes, request: RequestHead) -> bytes:
        """The head of an engine's response, with the router's permission instead of its own."""
        status, separator, lines = head.removesuffix(HEAD_END).partition(LINE_END)
        kept = without_headers(separator + lines, _ENGINES_OWN)
        own = b"".join(b"\r\n%b: %b" % line for line in self.permission(request))
        return status + kept + own + HEAD_END


def cross_origin(origins: str) -> CrossOrigin | None:
    """None where no origin is configured."""
    return CrossOrigin(origins) if origins.strip() else None


def options_page(cors: CrossOrigin | None, request: RequestHead, allowed: bytes) -> Page:
    """The answer to OPTIONS (RFC 9110, 9.3.7): the methods there are, and what a page may do."""
    headers: HeaderLines = [(b"allow", allowed)]
    if cors is not None:
        headers += cors.preflight(request, allowed)
    return Page(204, b"", headers=headers)
