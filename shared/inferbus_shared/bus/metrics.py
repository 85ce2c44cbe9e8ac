"""What every service measures about its own work on the bus.

Labels are event types, never keys: their number is bounded by the catalog, whatever headers say.
"""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from prometheus_client import CollectorRegistry, Counter, Histogram

from inferbus_contracts.catalog import EVENTS
from inferbus_contracts.envelope import TYPE_PREFIX
from inferbus_contracts.services import Service
from inferbus_shared.bus.store import UnknownOutcomeError, WrongSequenceError

_BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)

_TYPES = frozenset(f"{TYPE_PREFIX}{type_}.v1" for type_ in EVENTS)
UNKNOWN_TYPE = "unknown"


def type_label(headers: Mapping[str, str] | None) -> str:
    """The type that the headers of an event name; `unknown` where the catalog has none such."""
    type_ = (headers or {}).get("ce-type", "")
    return type_ if type_ in _TYPES else UNKNOWN_TYPE


def metric_prefix(service: Service) -> str:
    """What the names of a service's metrics begin with."""
    return f"inferbus_{service.value.replace('-', '_')}"


class CommitMetrics:
    """Commits of a decider: how many were stored, lost a race, or got no answer."""

    def __init__(self, service: Service, registry: CollectorRegistry) -> None:
        commits = Counter(
            f"{metric_prefix(service)}_commits_total",
            "Atomic commits of state, decision and timer, by outcome.",
            ("outcome",),
            registry=registry,
        )
        self._stored = commits.labels("stored")
        self._conflict = commits.labels("conflict")
        self._unknown = commits.labels("unknown")

    @contextmanager
    def committing(self) -> Iterator[None]:
        """Count one commit, however it ends."""
        try:
            yield
        except WrongSequenceError:
            self._conflict.inc()
            raise
        except UnknownOutcomeError:
            self._unknown.inc()
            raise
        self._stored.inc()


class BusMetrics:
    """Events handled: how many, how they ended, how long they took."""

    def __init__(self, service: Service, registry: CollectorRegistry) -> None:
        prefix = metric_prefix(service)
        self._events = Counter(
            f"{prefix}_events_total",
            "Events and requests handled, by type and outcome.",
            ("type", "outcome"),
            registry=registry,
        )
        self._seconds = Histogram(
            f"{prefix}_handling_seconds",
            "Time from delivery to acknowledgement or reply.",
            ("type",),
            buckets=_BOUNDS,
            registry=registry,
        )

    def handled(self, type_: str, outcome: str, started: float) -> None:
        """Count one; `started` is the `time.perf_counter` of its arrival."""
        self._events.labels(type_, outcome).inc()
        self._seconds.labels(type_).observe(time.perf_counter() - started)
