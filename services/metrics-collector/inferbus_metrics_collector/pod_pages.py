"""Readings of pods' pages: each page once per round, whoever needs it, and what it said before.

Invariant: an endpoint that hangs costs its own target at most the deadline and nobody else
anything: what timed out last time waits in a line of its own.
"""

import asyncio
from collections.abc import Callable, Collection

from inferbus_contracts.events.workload import PodFact
from inferbus_metrics_collector.plans import ENGINE_PORT, Page
from inferbus_metrics_collector.policy_history import (
    History,
    PodReading,
    PodStart,
    Reading,
    Window,
    baseline,
    remember,
)
from inferbus_metrics_collector.policy_sample import Failure
from inferbus_metrics_collector.policy_selection import engine_port
from inferbus_metrics_collector.ports import (
    Endpoint,
    PageSource,
    ScrapeError,
)
from inferbus_metrics_collector.telemetry import ScrapeMetrics
from inferbus_metrics_collector.under_way import UnderWay
from inferbus_shared.pages.scan import PageReading, Scan

_SLOW_SHARE = 4
"""One in so many connections may be spent on endpoints that timed out last time."""


class PodPages:
    """Reads pages of pods and remembers what rates need."""

    def __init__(
        self,
        source: PageSource,
        steady_ms: Callable[[], int],
        metrics: ScrapeMetrics,
        *,
        window: Window,
        timeout_seconds: float,
        concurrency: int,
    ) -> None:
        """`steady_ms`: virtual time that never jumps; `timeout_seconds`: of one page, real time,
        waiting included."""
        self._source = source
        self._steady_ms = steady_ms
        self._metrics = metrics
        self._window = window
        self._timeout_seconds = timeout_seconds
        self._line = asyncio.Semaphore(concurrency)
        self._slow_line = asyncio.Semaphore(max(concurrency // _SLOW_SHARE, 1))
        self._slow: set[Endpoint] = set()
        self._under_way: UnderWay[tuple[Endpoint, frozenset[str]], PodReading | Failure]
        self._under_way = UnderWay()
        self._histories: dict[Endpoint, History] = {}

    def read(
        self, pod: PodFact, page: Page, wanted: frozenset[str]
    ) -> asyncio.Task[PodReading | Failure]:
        """The page of a pod, scanned for the `wanted` families, or why there is none.

        Callers that want the same while it is under way share it.
        """
        port = engine_port(pod) if page.port == ENGINE_PORT else page.port
        endpoint = Endpoint(pod.address, port, page.path)
        start = PodStart(pod.uid, pod.starting_since_ms)
        return self._under_way.join((endpoint, wanted), lambda: self._read(endpoint, start, wanted))

    def forget(self, addresses: Collection[str]) -> None:
        """Forget what the pods at these addresses said."""
        for endpoint in [item for item in self._histories if item.address in addresses]:
            del self._histories[endpoint]
        self._slow = {endpoint for endpoint in self._slow if endpoint.address not in addresses}

    async def _read(
        self, endpoint: Endpoint, start: PodStart, wanted: frozenset[str]
    ) -> PodReading | Failure:
        started = self._metrics.now()
        try:
            body = await self._get(endpoint)
        except ScrapeError as error:
            self._metrics.failed(started)
            return Failure(str(error))
        self._metrics.scraped(started, len(body))
        reading = Reading(self._steady_ms(), await _scan(body, wanted))
        history = self._histories.get(endpoint)
        past = baseline(history, start, reading.at_ms, self._window)
        self._histories[endpoint] = remember(history, start, reading, self._window)
        return PodReading(reading, past)

    async def _get(self, endpoint: Endpoint) -> bytes:
        line = self._slow_line if endpoint in self._slow else self._line
        self._slow.discard(endpoint)
        asked = False
        try:
            async with asyncio.timeout(self._timeout_seconds), line:
                asked = True
                return await self._source.get(endpoint)
        except TimeoutError:
            if asked:
                self._slow.add(endpoint)
            raise ScrapeError(f"no page within {self._timeout_seconds:g} s") from None


async def _scan(body: bytes, wanted: frozenset[str]) -> Scan:
    """The page, read at a stretch only as far as others can wait."""
    reading = PageReading(body, wanted)
    for _ in reading.pauses():
        await asyncio.sleep(0)
    return reading.found()
