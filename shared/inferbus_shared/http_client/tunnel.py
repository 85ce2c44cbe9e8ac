"""A way through a proxy: asks it to pass bytes on to the server, and nothing else.

Invariant: nothing that the server says is read here, because it says nothing before it is spoken
to. (RFC 9110, 9.3.6)
"""

import asyncio

from inferbus_shared.http_client.failures import NoAnswerError
from inferbus_shared.http_client.route import Address

_HEAD_END = b"\r\n\r\n"
_MOST_HEAD_BYTES = 2**16


class Tunnel(asyncio.Protocol):
    """The connection to a proxy until it is a tunnel."""

    def __init__(self) -> None:
        self._received = b""
        self._opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def open(self, transport: asyncio.Transport, to: Address, authorization: str) -> None:
        """Ask for `to`; raises `NoAnswerError` where the proxy refuses."""
        lines = [f"CONNECT {to} HTTP/1.1", f"Host: {to}"]
        if authorization:
            lines.append(f"Proxy-Authorization: {authorization}")
        transport.write("\r\n".join((*lines, "", "")).encode())
        await self._opened

    def data_received(self, data: bytes) -> None:
        """Part of asyncio.Protocol."""
        self._received += data
        head, end, _ = self._received.partition(_HEAD_END)
        if not end and len(head) <= _MOST_HEAD_BYTES:
            return
        first_line = head.partition(b"\r\n")[0][:200].decode("latin-1")
        self._settle("" if _is_success(first_line) else f"the proxy answered {first_line!r}")

    def connection_lost(self, error: Exception | None) -> None:
        """Part of asyncio.Protocol."""
        self._settle(f"the proxy closed the connection{f': {error}' if error else ''}")

    def _settle(self, refusal: str) -> None:
        if self._opened.done():
            return
        if refusal:
            self._opened.set_exception(NoAnswerError(refusal))
        else:
            self._opened.set_result(None)


def _is_success(first_line: str) -> bool:
    version, _, rest = first_line.partition(" ")
    return version.startswith("HTTP/1.") and rest[:1] == "2" and rest[:3].isdigit()
