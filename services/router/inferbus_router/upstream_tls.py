"""TLS to what requests are sent to: whom the router trusts, and what it keeps of each peer.

Invariant: a peer is believed only with a certificate that a trusted authority signed for the name
that was asked for, unless checking is switched off by name; sessions of one peer are offered to no
other.
"""

import asyncio
import ssl
from pathlib import Path
from typing import cast

from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_router.settings import RouterSettings
from inferbus_router.transport import Trust


class PeerTls:
    """TLS to one peer, which remembers its last session so that the next connection is cheaper.

    Stands in for the `SSLContext` of a connection: event loops ask a context for nothing but
    `wrap_bio`, and have no argument for a session (RFC 8446, 2.2).
    """

    def __init__(self, context: ssl.SSLContext, server_name: str) -> None:
        """`server_name` is what the certificate must be made out for: a DNS name or an address."""
        self.server_name = server_name
        self._context = context
        self._session: ssl.SSLSession | None = None

    @property
    def context(self) -> ssl.SSLContext:
        """For `create_connection`."""
        return cast(ssl.SSLContext, self)

    def wrap_bio(
        self,
        incoming: ssl.MemoryBIO,
        outgoing: ssl.MemoryBIO,
        server_side: bool = False,
        server_hostname: str | bytes | None = None,
    ) -> ssl.SSLObject:
        """One connection's TLS (`SSLContext.wrap_bio`)."""
        return self._context.wrap_bio(
            incoming, outgoing, server_side, server_hostname, self._session
        )

    def remember(self, transport: asyncio.BaseTransport) -> None:
        """Offer the session of this connection, which has served a request, to the next one."""
        wrapped: ssl.SSLObject | None = transport.get_extra_info("ssl_object")
        if wrapped is not None and (session := wrapped.session) is not None:
            self._session = session


class UpstreamTls:
    """How the router speaks TLS to all its peers."""

    def __init__(self, settings: RouterSettings) -> None:
        """Raises `ProblemsError` where the trusted certificates can't be read."""
        fleet = (
            _checked(settings.upstream_ca_file, "INFERBUS_ROUTER_UPSTREAM_CA_FILE")
            if settings.upstream_tls_verify
            else _unchecked()
        )
        self._contexts = {
            Trust.FLEET: fleet,
            Trust.PUBLIC: _checked(settings.provider_ca_file, "INFERBUS_ROUTER_PROVIDER_CA_FILE"),
            Trust.ANYBODY: _unchecked(),
        }
        self._fleet_name = settings.upstream_server_name

    def peer(self, address: str, trust: Trust) -> PeerTls:
        """To what listens at an address, a name or an IP address."""
        name = self._fleet_name if trust is Trust.FLEET else None
        return PeerTls(self._contexts[trust], name or address)


def _checked(authorities: Path | None, setting: str) -> ssl.SSLContext:
    """`authorities` is a file of PEM certificates; None: those of the system."""
    try:
        context = ssl.create_default_context(cafile=authorities)
    except (OSError, ssl.SSLError) as error:
        raise ProblemsError(
            Problem(
                code=ErrorCode.BAD_SETTING,
                message=f"the certificates can't be read: {error}",
                field=setting,
                value=str(authorities),
                remedy="set it to a file of PEM certificates",
            )
        ) from None
    return _speaking_http(context)


def _unchecked() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return _speaking_http(context)


def _speaking_http(context: ssl.SSLContext) -> ssl.SSLContext:
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    return context
