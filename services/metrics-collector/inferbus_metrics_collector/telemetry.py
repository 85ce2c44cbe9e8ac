"""What the collector measures about itself.

Invariant: no label holds a key, an address or anything else that users make up.
"""

import time

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

_PREFIX = "inferbus_metrics_collector"
_BOUNDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)


class ScrapeMetrics:
    """Pages: how many, how they ended, how long they took, how large they were."""

    def __init__(self, registry: CollectorRegistry) -> None:
        scrapes = Counter(
            f"{_PREFIX}_scrapes_total",
            "Pages asked for, by outcome.",
            ("outcome",),
            registry=registry,
        )
        self._good = scrapes.labels("page")
        self._bad = scrapes.labels("failed")
        self._bytes = Counter(
            f"{_PREFIX}_page_bytes_total", "Bytes of pages that were read.", registry=registry
        )
        self._seconds = Histogram(
            f"{_PREFIX}_scrape_seconds",
            "Time from asking for a page to its end.",
            buckets=_BOUNDS,
            registry=registry,
        )

    def now(self) -> float:
        """A moment to hand back when the page is there, or isn't."""
        return time.perf_counter()

    def scraped(self, started: float, size_bytes: int) -> None:
        """A page was read."""
        self._good.inc()
        self._bytes.inc(size_bytes)
        self._seconds.observe(self.now() - started)

    def failed(self, started: float) -> None:
        """There was no page."""
        self._bad.inc()
        self._seconds.observe(self.now() - started)


class SampleMetrics:
    """Samples: how many went out, how many didn't, how many keys are this instance's."""

    def __init__(self, registry: CollectorRegistry) -> None:
        samples = Counter(
            f"{_PREFIX}_samples_total",
            "Rounds of a key, by outcome.",
            ("outcome",),
            registry=registry,
        )
        self.emitted = samples.labels("emitted")
        self.refused = samples.labels("refused")
        self.no_target = samples.labels("no_target")
        self.overrun = samples.labels("overrun")
        self.keys = Gauge(
            f"{_PREFIX}_owned_keys", "Keys that this instance samples.", registry=registry
        )
