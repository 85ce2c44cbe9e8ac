"""What the service measures about its downloads; no label is a key."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

_PREFIX = "inferbus_model_downloader"
_SECONDS = (0.1, 1.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3600.0, 14400.0)


class DownloadMetrics:
    """Requests and bytes."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.active = Gauge(
            f"{_PREFIX}_active_requests", "Requests being worked on.", registry=registry
        )
        self.fetched_bytes = Counter(
            f"{_PREFIX}_fetched_bytes_total", "Bytes that arrived from sources.", registry=registry
        )
        self.requests = Counter(
            f"{_PREFIX}_requests_total",
            "Requests that ended: ready, or the code of the problem.",
            ("outcome",),
            registry=registry,
        )
        self.seconds = Histogram(
            f"{_PREFIX}_ready_seconds",
            "Time from a request's arrival to its artifact being ready.",
            buckets=_SECONDS,
            registry=registry,
        )
