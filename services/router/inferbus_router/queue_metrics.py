"""The families of the metrics page that tell about lines (routing spec 6.6).

Invariant: as in `metrics`, a scrape changes nothing, and labels come from the routing table.
"""

from collections.abc import Iterable, Iterator

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)

from inferbus_router.queues import QUEUED_BOUNDS_MS, Line, Queues

_REFERENCE = "kthena_router_"
_ALL = "_all"
"""The reference's user_id of what isn't told by user."""


def queue_families(queues: Queues) -> Iterator[Metric]:
    """Size, running, turns, cancellations and time in line, by model."""
    prefix = _REFERENCE + queues.rules.name
    by_user = queues.rules.name == "fairness_queue"
    labels = ("model", "user_id") if by_user else ("model",)
    rows = [
        ((model, _ALL) if by_user else (model,), line) for model, line in list(queues.lines.items())
    ]
    size = GaugeMetricFamily(prefix + "_size", "Requests that wait for their turn", labels=labels)
    dequeued = CounterMetricFamily(
        prefix + "_dequeue", "Requests whose turn has come", labels=labels
    )
    cancelled = CounterMetricFamily(
        prefix + "_cancelled", "Requests that stopped waiting before their turn", labels=labels
    )
    running = GaugeMetricFamily(
        prefix + "_inflight", "Requests whose turn has come and that run", labels=("model",)
    )
    for row, line in rows:
        size.add_metric(row, len(line.order))
        dequeued.add_metric(row, line.dequeued)
        cancelled.add_metric(row, line.cancelled)
        running.add_metric(row[:1], line.running)
    yield from (size, dequeued, cancelled, running)
    yield _durations(prefix + "_duration_seconds", labels, rows)


def _durations(
    name: str, labels: tuple[str, ...], rows: Iterable[tuple[tuple[str, ...], Line]]
) -> HistogramMetricFamily:
    family = HistogramMetricFamily(name, "Time until a request's turn came", labels=labels)
    bounds = [*(str(bound_ms / 1000) for bound_ms in QUEUED_BOUNDS_MS), "+Inf"]
    for row, line in rows:
        total, buckets = 0, []
        for bound, counted in zip(bounds, line.duration_counts, strict=True):
            total += counted
            buckets.append((bound, float(total)))
        family.add_metric(row, buckets, sum_value=line.duration_sum_ms / 1000)
    return family
