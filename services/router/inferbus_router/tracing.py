"""Spans of requests, sent to an OpenTelemetry collector in batches.

An exporter of our own: the OpenTelemetry SDK makes objects, locks and context switches of every
span, on the thread that serves requests, and costs more than the request itself; here a request
costs its ids and a list entry, and everything else happens once a batch. Invariant: at most
`MOST_WAITING` requests wait; beyond that, and where the collector doesn't take them, spans are
dropped and counted, and no request waits.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator
from random import getrandbits, random
from urllib.parse import urlsplit

import orjson

from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_contracts.events.route import EndpointEntry
from inferbus_router.endpoint import ConnectionSettings, Endpoint
from inferbus_router.own_request import OwnRequestError, ask
from inferbus_router.policy_spans import export_request
from inferbus_router.policy_trace_context import Trace
from inferbus_router.record import RequestRecord
from inferbus_router.request import Request
from inferbus_router.transport import Transport

MOST_WAITING = 20_000
MOST_IN_BATCH = 512
TIMEOUT_SECONDS = 10.0
LAST_SEND_SECONDS = 2.0
"""When the router stops."""
_MOST_ANSWER_BYTES = 1 << 16
_SERVICE = "inferbus-router"
_TRACES = "/v1/traces"
_log = logging.getLogger("inferbus.router.tracing")

OnEnded = Callable[[RequestRecord], None]


class Tracer:
    """The traces of one router."""

    def __init__(self, collector: "Collector", instance: str, sample_ratio: float) -> None:
        """`sample_ratio`, 0 to 1, is the part of the traces that begin here which is kept."""
        self.exported = 0
        self.dropped = 0
        """Requests whose spans the collector has, and that were lost."""
        self._collector = collector
        self._instance = instance
        self._sample_ratio = sample_ratio
        self._waiting: list[tuple[RequestRecord, Trace]] = []
        self._failed = False
        self._sending: asyncio.Task[None] | None = None

    def begin(self, request: Request) -> None:
        """A request has arrived: its engine will be told of the trace."""
        kept = random() < self._sample_ratio
        request.trace = Trace(request.head.forwarded, getrandbits(256), kept)

    def watching(self, then: OnEnded) -> OnEnded:
        """Takes note of what has ended, and passes it on."""

        def ended(record: RequestRecord) -> None:
            self._note(record)
            then(record)

        return ended

    def _note(self, record: RequestRecord) -> None:
        trace = record.request.trace if record.request is not None else None
        if trace is None or not trace.is_sampled:
            return
        if len(self._waiting) >= MOST_WAITING:
            self.dropped += 1
        else:
            self._waiting.append((record, trace))

    def start(self, interval_seconds: float) -> None:
        """Send what has ended that often."""
        self._sending = asyncio.get_running_loop().create_task(self._keep_sending(interval_seconds))

    async def stop(self) -> None:
        """Send what is left, and nothing more."""
        if self._sending is not None:
            self._sending.cancel()
            await asyncio.gather(self._sending, return_exceptions=True)
        try:
            async with asyncio.timeout(LAST_SEND_SECONDS):
                await self.send()
        except TimeoutError:
            _log.error("the last spans can't be sent to %s in time", self._collector.url)
        self._collector.endpoint.retire()

    async def _keep_sending(self, interval_seconds: float) -> None:
        while True:
            await asyncio.sleep(interval_seconds)
            await self.send()

    async def send(self) -> None:
        """Send what waits, batch by batch."""
        waiting, self._waiting = self._waiting, []
        for start in range(0, len(waiting), MOST_IN_BATCH):
            batch = waiting[start : start + MOST_IN_BATCH]
            body = orjson.dumps(export_request(batch, _SERVICE, self._instance))
            try:
                await self._collector.send(body)
            except OwnRequestError as error:
                self.dropped += len(waiting) - start
                if not self._failed:
                    _log.error("spans can't be sent to %s: %s", self._collector.url, error)
                self._failed = True
                return
            self.exported += len(batch)
            self._failed = False

    def gauges(self) -> Iterator[tuple[str, str, float]]:
        """(name, help, value) of how it goes."""
        yield "traced_requests_exported", "Requests whose spans were sent", self.exported
        yield "traced_requests_dropped", "Requests whose spans were lost", self.dropped


class Collector:
    """Where spans go, by OTLP over HTTP."""

    def __init__(self, url: str, connections: ConnectionSettings) -> None:
        """Raises `ProblemsError` where it is no address over HTTP."""
        parts = urlsplit(url)
        try:
            port = parts.port or (443 if parts.scheme == "https" else 80)
        except ValueError:
            raise ProblemsError(_bad_address(url)) from None
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ProblemsError(_bad_address(url))
        self.url = url
        path = parts.path.rstrip("/") or _TRACES
        entry = EndpointEntry(pod="", address=parts.hostname, port=port)
        self.endpoint = Endpoint(entry, Transport(parts.scheme), connections)
        self._head = f"POST {path} HTTP/1.1\r\ncontent-type: application/json".encode()

    async def send(self, body: bytes) -> None:
        """Hand over one batch; raises `OwnRequestError` where it isn't taken."""
        await ask(self.endpoint, self._head, body, TIMEOUT_SECONDS, _MOST_ANSWER_BYTES)


def _bad_address(url: str) -> Problem:
    return Problem(
        code=ErrorCode.BAD_SETTING,
        message="this is no address of an OTLP collector",
        field="INFERBUS_ROUTER_TRACING",
        value=url,
        remedy="set it to a URL such as http://127.0.0.1:4318, or unset it",
    )
