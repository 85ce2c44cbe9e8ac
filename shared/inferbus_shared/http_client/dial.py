"""Opens a connection: looks the name up, connects, goes through a proxy, agrees on TLS.

Invariant: however it ends, by success, failure or cancellation, nothing stays open but what is
handed to the connection. That is why the socket is connected first and TLS follows on it: a
transport that is still being made can't be closed.
"""

import asyncio
import socket
from typing import TypeVar, cast

from aiohappyeyeballs import start_connection

from inferbus_shared.http_client.connection import Connection
from inferbus_shared.http_client.failures import NoAnswerError
from inferbus_shared.http_client.route import Address, Route
from inferbus_shared.http_client.tunnel import Tunnel

_NEXT_ADDRESS_SECONDS = 0.25
"""How long one address of a name is tried alone (RFC 8305, 5)."""

ProtocolT = TypeVar("ProtocolT", bound=asyncio.Protocol)


async def dial(route: Route, connection: Connection, limit_seconds: float) -> None:
    """Open `connection`; raises `NoAnswerError` where that fails or takes longer."""
    entry = route.entry
    try:
        async with asyncio.timeout(limit_seconds):
            sock = await _connect(entry)
            await _agree(route, sock, connection)
    except TimeoutError:
        raise NoAnswerError(f"{entry}: no connection within {limit_seconds:g} s") from None
    except (OSError, RuntimeError) as error:
        # uvloop raises RuntimeError where asyncio raises OSError (aiohappyeyeballs).
        reason = error.strerror if isinstance(error, OSError) else None
        raise NoAnswerError(f"{entry}: {reason or error}") from None


async def _connect(address: Address) -> socket.socket:
    found = await asyncio.get_running_loop().getaddrinfo(
        address.host, address.port, type=socket.SOCK_STREAM
    )
    sock = await start_connection(found, happy_eyeballs_delay=_NEXT_ADDRESS_SECONDS)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


async def _agree(route: Route, sock: socket.socket, connection: Connection) -> None:
    """Make the socket the connection's."""
    loop = asyncio.get_running_loop()
    first: asyncio.Protocol = Tunnel() if route.is_tunnel else connection
    raw, _ = await loop.create_connection(lambda: first, sock=sock)
    try:
        transport = await _encrypted(raw, first, route.entry)
        if isinstance(first, Tunnel):
            await first.open(transport, route.server, route.proxy_authorization)
            transport.set_protocol(connection)
            transport = await _encrypted(transport, connection, route.server)
        connection.connection_made(transport)
    except BaseException:
        raw.abort()
        # It is closed a round of the loop later.
        await asyncio.sleep(0)
        raise


async def _encrypted(
    transport: asyncio.Transport, protocol: asyncio.Protocol, address: Address
) -> asyncio.Transport:
    if address.tls is None:
        return transport
    upgraded = await asyncio.get_running_loop().start_tls(
        transport, protocol, address.tls, server_hostname=address.server_name
    )
    return cast(asyncio.Transport, upgraded)
