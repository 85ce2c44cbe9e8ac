"""The bytes of requests to one server. Pure.

Invariant: no value can end its line and add another (RFC 9112, 2.2).
"""

from collections.abc import Mapping

from inferbus_shared.http_client.route import Route


class RequestWriter:
    """Writes requests whose headers are mostly the same."""

    def __init__(self, route: Route, headers: Mapping[str, str]) -> None:
        """`headers` stand in every request."""
        self._route = route
        fixed = {"Host": route.authority, **headers}
        if route.proxy_authorization and not route.is_tunnel:
            fixed["Proxy-Authorization"] = route.proxy_authorization
        self._fixed = b" HTTP/1.1" + header_lines(fixed)

    def request(self, method: str, path: str, headers: bytes, body: bytes | None) -> bytes:
        """A request; `headers` come from `header_lines`, `path` includes the query."""
        head = f"{method} {self._route.target(path)}".encode("ascii")
        if body is None:
            return b"%b%b%b\r\n\r\n" % (head, self._fixed, headers)
        return b"%b%b%b\r\nContent-Length: %d\r\n\r\n%b" % (
            head,
            self._fixed,
            headers,
            len(body),
            body,
        )


def header_lines(headers: Mapping[str, str]) -> bytes:
    """Headers, each behind its line end; raises `ValueError` for a value that isn't one line."""
    for name, value in headers.items():
        if any(end in value for end in "\r\n\0"):
            raise ValueError(f"the value of {name} isn't one line")
    return "".join(f"\r\n{name}: {value}" for name, value in headers.items()).encode()
