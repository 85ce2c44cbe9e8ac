"""The router's metrics page: the counters folded into Prometheus families when somebody asks.

Names and labels are the reference's (routing spec 6.6) where it has them; what it lacks, time to
first token above all, carries the project's own prefix. Invariant: a scrape changes nothing.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector, CollectorRegistry

from inferbus_contracts.events.demand import LATENCY_BOUNDS_MS
from inferbus_router.admin import Gauges
from inferbus_router.metric_families import OWN, REFERENCE, cumulative
from inferbus_router.record import Destination
from inferbus_router.traffic import (
    DestinationTraffic,
    Histogram,
    Outcome,
    OutcomeCount,
    Phase,
    Traffic,
)

Source = Callable[[], Iterable[Metric]]
_UNSET = "none"
"""The reference's label of what a request never came to."""
_BACKEND = ("model_route", "backend_type", "backend_name", "upstream_model")


class RouterCollector(Collector):
    """Collects one router's counters."""

    def __init__(self, traffic: Traffic, gauges: Gauges, sources: Sequence[Source] = ()) -> None:
        """`sources` give the families that others count."""
        self._traffic = traffic
        self._gauges = gauges
        self._sources = sources

    def collect(self) -> Iterator[Metric]:
        """All families."""
        destinations = list(self._traffic.destinations())
        yield from _request_families(destinations)
        yield from _token_families(destinations)
        yield from _latency_families(destinations)
        yield from _phase_families(destinations)
        yield from self._active_families(destinations)
        yield from self._limit_families()
        for name, text, value in self._gauges():
            yield GaugeMetricFamily(OWN + name, text, value)
        for source in self._sources:
            yield from source()

    def _active_families(self, destinations: list[DestinationTraffic]) -> Iterator[Metric]:
        yield GaugeMetricFamily(
            REFERENCE + "active_requests",
            "Requests being served",
            self._traffic.active_requests,
        )
        downstream = GaugeMetricFamily(
            REFERENCE + "active_downstream_requests",
            "Requests being served, by the model clients named",
            labels=("model",),
        )
        for model, model_traffic in self._traffic.models.items():
            downstream.add_metric((model,), model_traffic.active)
        yield downstream
        upstream = GaugeMetricFamily(
            REFERENCE + "active_upstream_requests",
            "Requests that engines work on",
            labels=("model_server", *_BACKEND),
        )
        active_by_backend: dict[tuple[str, ...], int] = {}
        for traffic in destinations:
            key = (traffic.labels.backend or _UNSET, *_backend_labels(traffic.labels))
            active_by_backend[key] = active_by_backend.get(key, 0) + traffic.active
        for labels, active in active_by_backend.items():
            upstream.add_metric(labels, active)
        yield upstream

    def _limit_families(self) -> Iterator[Metric]:
        limited = CounterMetricFamily(
            REFERENCE + "rate_limit_exceeded",
            "Requests refused because a token limit was used up",
            labels=("model", "limit_type", "path"),
        )
        for model, model_traffic in self._traffic.models.items():
            for (side, path), count in model_traffic.limited.items():
                limited.add_metric((model, side, path), count)
        yield limited


def _request_families(destinations: Iterable[DestinationTraffic]) -> Iterator[Metric]:
    requests = CounterMetricFamily(
        REFERENCE + "requests",
        "Requests that ended",
        labels=("model", "path", "status_code", "error_type", *_BACKEND),
    )
    durations: dict[tuple[str, ...], Histogram] = {}
    for labels, outcome, count in _outcomes(destinations):
        status = str(outcome.status)
        backend = _backend_labels(labels)
        if not count.requests:
            continue
        requests.add_metric(
            (_model_label(labels), outcome.path, status, outcome.error_type, *backend),
            count.requests,
        )
        key = (_model_label(labels), outcome.path, status, *backend)
        durations.setdefault(key, Histogram()).add(count.duration)
    yield requests
    yield _histogram_family(
        REFERENCE + "request_duration_seconds",
        "From the arrival of a request to the end of its response",
        ("model", "path", "status_code", *_BACKEND),
        durations.items(),
    )


def _token_families(destinations: Iterable[DestinationTraffic]) -> Iterator[Metric]:
    sums: dict[tuple[str, ...], int] = {}
    for labels, outcome, count in _outcomes(destinations):
        for kind, tokens in (("input", count.input_tokens), ("output", count.output_tokens)):
            key = (_model_label(labels), outcome.path, kind, *_backend_labels(labels))
            sums[key] = sums.get(key, 0) + tokens
    tokens_family = CounterMetricFamily(
        REFERENCE + "tokens",
        "Tokens of requests that engines answered, as they counted them where they did",
        labels=("model", "path", "token_type", *_BACKEND),
    )
    for row, tokens in sums.items():
        if tokens:
            tokens_family.add_metric(row, tokens)
    yield tokens_family


def _latency_families(destinations: list[DestinationTraffic]) -> Iterator[Metric]:
    labels = ("model", *_BACKEND)
    keys = [
        (_model_label(traffic.labels), *_backend_labels(traffic.labels)) for traffic in destinations
    ]
    yield _histogram_family(
        OWN + "time_to_first_token_seconds",
        "From the arrival of a streamed request to the first byte of its response",
        labels,
        zip(keys, (traffic.ttft for traffic in destinations), strict=True),
    )
    yield _histogram_family(
        OWN + "inter_token_seconds",
        "Between two events of a streamed response",
        labels,
        zip(keys, (traffic.inter_token for traffic in destinations), strict=True),
    )
    retries = CounterMetricFamily(
        OWN + "upstream_retries", "Attempts beyond the first of a request", labels=labels
    )
    for key, traffic in zip(keys, destinations, strict=True):
        if traffic.retries:
            retries.add_metric(key, traffic.retries)
    yield retries


def _phase_families(destinations: list[DestinationTraffic]) -> Iterator[Metric]:
    for phase in Phase:
        rows: dict[tuple[str, ...], Histogram] = {}
        for traffic in destinations:
            for key, durations in traffic.phases.items():
                if key.phase is phase:
                    row = (_model_label(traffic.labels), key.path, str(key.status))
                    rows.setdefault(row, Histogram()).add(durations)
        yield _histogram_family(
            f"{REFERENCE}request_{phase}_duration_seconds",
            f"Of the {phase} phase of requests that two endpoints serve",
            ("model", "path", "status_code"),
            rows.items(),
        )


def _histogram_family(
    name: str,
    text: str,
    labels: tuple[str, ...],
    rows: Iterable[tuple[tuple[str, ...], Histogram]],
) -> HistogramMetricFamily:
    family = HistogramMetricFamily(name, text, labels=labels)
    for key, histogram in rows:
        if any(histogram.counts):
            family.add_metric(key, _buckets(histogram), sum_value=histogram.sum_ms / 1000)
    return family


def _buckets(histogram: Histogram) -> list[tuple[str, float]]:
    """Cumulative, as Prometheus wants them."""
    return cumulative([bound_ms / 1000 for bound_ms in LATENCY_BOUNDS_MS], histogram.counts)


def _outcomes(
    destinations: Iterable[DestinationTraffic],
) -> Iterator[tuple[Destination, Outcome, OutcomeCount]]:
    for traffic in destinations:
        for outcome, count in list(traffic.outcomes.items()):
            yield traffic.labels, outcome, count


def _model_label(labels: Destination) -> str:
    return labels.model or "unknown"


def _backend_labels(labels: Destination) -> tuple[str, str, str, str]:
    kind = labels.backend_type if labels.backend else "unresolved"
    return (
        labels.route or _UNSET,
        kind,
        labels.backend or _UNSET,
        labels.upstream_model or _UNSET,
    )


def metrics_page(
    traffic: Traffic, gauges: Gauges, sources: Sequence[Source] = ()
) -> tuple[bytes, bytes]:
    """The page in Prometheus' text format, and its content type."""
    registry = CollectorRegistry()
    registry.register(RouterCollector(traffic, gauges, sources))
    return generate_latest(registry), CONTENT_TYPE_LATEST.encode()
