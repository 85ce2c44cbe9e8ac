"""The least a client can do for a completion, so that little of what is measured is the client.

Connections are kept; each asks again as soon as it is answered. Invariant: only complete answers
with status 200 count, anything else ends the measurement.
"""

import asyncio
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from tests.bench.figure import quantile


@dataclass(frozen=True, kw_only=True)
class Round:
    """What clients saw within one stretch of time."""

    seconds: float
    latencies_ms: Sequence[float]

    @property
    def rate(self) -> float:
        """Completions per second."""
        return len(self.latencies_ms) / self.seconds

    @property
    def median_ms(self) -> float:
        """The middle latency."""
        return quantile(self.latencies_ms, 0.5)


async def ask_for(url: str, model: str, clients: int, seconds: float) -> Round:
    """Have that many clients ask one base URL for completions of one token for that long."""
    latencies: list[float] = []
    until = time.monotonic() + seconds
    began = time.monotonic()
    async with asyncio.TaskGroup() as together:
        for _ in range(clients):
            together.create_task(_client(url, model, until, latencies))
    return Round(seconds=time.monotonic() - began, latencies_ms=latencies)


async def _client(url: str, model: str, until: float, latencies_ms: list[float]) -> None:
    place = urlsplit(url)
    reader, writer = await asyncio.open_connection(place.hostname, place.port)
    request = _request(model, place.netloc)
    try:
        while time.monotonic() < until:
            began = time.perf_counter()
            writer.write(request)
            await _answer(reader)
            latencies_ms.append((time.perf_counter() - began) * 1000)
    finally:
        writer.close()


def _request(model: str, host: str) -> bytes:
    body = json.dumps({"model": model, "prompt": "hello", "max_tokens": 1}).encode()
    head = (
        "POST /v1/completions HTTP/1.1",
        f"host: {host}",
        "content-type: application/json",
        f"content-length: {len(body)}",
    )
    return "\r\n".join((*head, "", "")).encode() + body


async def _answer(reader: asyncio.StreamReader) -> None:
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    status, _, fields = head.partition(b"\r\n")
    if b" 200 " not in status:
        raise AssertionError(f"a completion was answered with {status.decode()}")
    length = fields.partition(b"content-length:")[2].partition(b"\r\n")[0]
    await reader.readexactly(int(length))
