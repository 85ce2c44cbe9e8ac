"""What the metrics page says about single endpoints (the reference's defects 16 and 38).

Invariant: at most `MOST_ENDPOINTS` endpoints have rows of their own, those that were used most; the
rest is added up under the pod `_other`, so that a large fleet doesn't drown who reads the page.
"""

from collections.abc import Iterator
from typing import NamedTuple

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from inferbus_router.endpoint import Endpoint
from inferbus_router.fleet import Fleet
from inferbus_router.metric_families import OWN

MOST_ENDPOINTS = 1000
_OTHER = "_other"
_LABELS = ("model_server", "pod")


class _Row(NamedTuple):
    in_flight: int = 0
    successes: int = 0
    failures: int = 0
    abandonments: int = 0
    ejected: int = 0
    ejections: int = 0

    @property
    def is_unused(self) -> bool:
        return not any(self)


def endpoint_families(fleet: Fleet[Endpoint]) -> Iterator[Metric]:
    """Requests, load and health by endpoint; those that never had a request are left out."""
    requests = CounterMetricFamily(
        OWN + "endpoint_requests",
        "Attempts that ended, by what became of them: success (an answer that can be asked of an "
        "endpoint), failure, or abandoned (the client left, or the connection was stale)",
        labels=(*_LABELS, "outcome"),
    )
    in_flight = GaugeMetricFamily(
        OWN + "endpoint_in_flight_requests", "Requests sent and not ended", labels=_LABELS
    )
    ejected = GaugeMetricFamily(
        OWN + "endpoint_ejected",
        "1: it gets no requests, because they kept failing",
        labels=_LABELS,
    )
    ejections = CounterMetricFamily(
        OWN + "endpoint_ejections", "How often it was ejected", labels=_LABELS
    )
    for labels, row in _rows(fleet).items():
        requests.add_metric((*labels, "success"), row.successes)
        requests.add_metric((*labels, "failure"), row.failures)
        requests.add_metric((*labels, "abandoned"), row.abandonments)
        in_flight.add_metric(labels, row.in_flight)
        ejected.add_metric(labels, row.ejected)
        ejections.add_metric(labels, row.ejections)
    yield from (requests, in_flight, ejected, ejections)


def _rows(fleet: Fleet[Endpoint]) -> dict[tuple[str, str], _Row]:
    """By model server and pod; an endpoint of several servers counts for the first."""
    owners: dict[Endpoint, str] = {}
    for state in fleet.servers():
        for endpoint in state.endpoints:
            owners.setdefault(endpoint, state.server.name)
    used = [
        (owner, endpoint.pod, row)
        for endpoint, owner in owners.items()
        if not (row := _row(endpoint)).is_unused
    ]
    used.sort(key=lambda each: -each[2].successes)
    rows: dict[tuple[str, str], _Row] = {}
    for index, (owner, pod, row) in enumerate(used):
        labels = (owner, pod if index < MOST_ENDPOINTS else _OTHER)
        known = rows.get(labels, _Row())
        rows[labels] = _Row(*(one + two for one, two in zip(known, row, strict=True)))
    return rows


def _row(endpoint: Endpoint) -> _Row:
    health = endpoint.health
    return _Row(
        endpoint.in_flight,
        health.successes,
        health.all_failures,
        health.abandonments,
        int(bool(health.ejected_until_ms)),
        health.all_ejections,
    )
