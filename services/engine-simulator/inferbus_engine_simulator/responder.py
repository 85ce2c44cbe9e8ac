"""A container that is no engine: answers 200 `ok` to any HTTP request on its ports.

Stands in for sidecars and web servers of simulated pods, so that probes and links work. Reads a
request's head and body, answers, closes. Deliberately without an HTTP library: there are many of
these processes, and each should be as small as Python allows.

Invariant: nothing runs while no client is connected.
"""

import argparse
import asyncio
import re
import signal
import sys
from collections.abc import Sequence

_BODY = b"ok\n"
_HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\n"
    b"Content-Length: 3\r\nConnection: close\r\n\r\n"
)
_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*(\d+)", re.IGNORECASE)
_CHUNKED = re.compile(rb"\r\ntransfer-encoding:[^\r]*chunked", re.IGNORECASE)
_MAX_HEAD_BYTES = 65536


class Responder(asyncio.Protocol):
    """One connection."""

    def __init__(self) -> None:
        self._received = bytearray()
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client has connected."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Answer once the request is complete."""
        assert self._transport is not None
        self._received += data
        end = self._received.find(b"\r\n\r\n")
        if end < 0:
            if len(self._received) > _MAX_HEAD_BYTES:
                self._transport.abort()
            return
        if _is_complete(bytes(self._received[:end]), self._received[end + 4 :]):
            head_only = self._received.startswith(b"HEAD ")
            self._transport.write(_HEAD if head_only else _HEAD + _BODY)
            self._transport.close()


def _is_complete(head: bytes, body: bytearray) -> bool:
    if _CHUNKED.search(head):
        return body.endswith(b"0\r\n\r\n")
    length = _LENGTH.search(head)
    return len(body) >= (int(length[1]) if length else 0)


def main(argv: Sequence[str] | None = None) -> int:
    """Answer until SIGTERM or SIGINT; exit code 0, 1 when a port is taken, 2 for bad arguments."""
    parser = argparse.ArgumentParser(prog="responder", description="Answers 200 on its ports.")
    parser.add_argument("--port", type=int, action="append", required=True, metavar="PORT")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on")
    try:
        arguments = parser.parse_args(argv)
    except SystemExit as wanted:
        return int(wanted.code or 0)
    try:
        asyncio.run(_run(arguments.host, arguments.port))
    except OSError as error:
        print(f"can't listen on {arguments.host}: {error}", file=sys.stderr)  # noqa: T201
        return 1
    return 0


async def _run(host: str, ports: Sequence[int]) -> None:
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    servers = [await loop.create_server(Responder, host, port) for port in ports]
    await stop.wait()
    for server in servers:
        server.close()


if __name__ == "__main__":
    sys.exit(main())
