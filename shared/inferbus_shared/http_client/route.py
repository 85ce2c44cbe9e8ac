"""The way to a server: its own address, the proxy before it, and what TLS checks.

Pure but for the TLS defaults. Invariant: a route says where every byte goes; nothing about it is
looked up later.
"""

import ssl
from base64 import b64encode
from dataclasses import dataclass, field
from typing import Final, Self
from urllib.parse import SplitResult, quote, unquote, urlsplit

_PORTS: Final = {"http": 80, "https": 443}
_IN_TARGETS: Final = "/?=&%:@!$'()*+,;~"
"""What needs no quoting in a target (RFC 3986, 3.3 and 3.4), and the `%` of what is quoted."""


@dataclass(frozen=True, slots=True)
class Address:
    """A host that is connected to."""

    host: str
    """A name, or an IP address without brackets."""
    port: int
    tls: ssl.SSLContext | None = field(default=None, repr=False)
    """None for plain text."""
    server_name: str = ""
    """What the certificate must be for."""

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Route:
    """How requests get to a server, and what stands in them because of it."""

    server: Address
    proxy: Address | None
    proxy_authorization: str
    """The value of a header; empty for none."""
    authority: str
    """For the `Host` header."""
    prefix: str
    """What every target begins with: the path of the server's URL, or for a proxy all of it."""

    @classmethod
    def to(
        cls,
        url: str,
        *,
        tls: ssl.SSLContext | None = None,
        server_name: str | None = None,
        proxy: str | None = None,
    ) -> Self:
        """The route to `url`, through `proxy` where there is one.

        `tls` and `server_name` are for https; without them the system's certificates and the
        host's name count. Raises `ValueError` for anything but http and https, at both ends.
        """
        parts = _split(url)
        server = _address(parts, tls, server_name)
        authority = parts.netloc.rpartition("@")[2]
        path = parts.path.rstrip("/")
        if proxy is None:
            return cls(server, None, "", authority, path)
        proxy_parts = _split(proxy)
        prefix = path if server.tls else f"http://{authority}{path}"
        return cls(
            server, _address(proxy_parts, None, None), _basic(proxy_parts), authority, prefix
        )

    @property
    def entry(self) -> Address:
        """Who is connected to."""
        return self.proxy or self.server

    @property
    def is_tunnel(self) -> bool:
        """The proxy passes bytes on, instead of requests (RFC 9110, 9.3.6)."""
        return self.proxy is not None and self.server.tls is not None

    def target(self, path: str) -> str:
        """What stands in the first line of a request for `path`, query included.

        No character of it can end the line.
        """
        return quote(f"{self.prefix}{path}", safe=_IN_TARGETS)


def _split(url: str) -> SplitResult:
    parts = urlsplit(url)
    if parts.scheme not in _PORTS or not parts.hostname:
        raise ValueError(f"{parts.scheme}://{parts.hostname or ''} is no http:// or https:// URL")
    return parts


def _address(parts: SplitResult, tls: ssl.SSLContext | None, server_name: str | None) -> Address:
    host = parts.hostname or ""
    port = parts.port or _PORTS[parts.scheme]
    if parts.scheme == "http":
        return Address(host, port)
    return Address(host, port, tls or ssl.create_default_context(), server_name or host)


def _basic(parts: SplitResult) -> str:
    """The credentials in a URL as a header's value (RFC 7617)."""
    if parts.username is None:
        return ""
    pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    return f"Basic {b64encode(pair.encode()).decode('ascii')}"
