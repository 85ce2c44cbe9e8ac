"""What the workload-reconciler measures about itself.

Invariant: labels are words of the contracts, never keys or names that users make up.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from inferbus_contracts.events.scaling import ApplyOutcome
from inferbus_contracts.events.workload import Action, Outcome

_PREFIX = "inferbus_workload_reconciler"
_LAGS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class ReconcilerMetrics:
    """Answers to decisions, actions on objects, passes over workloads."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._answers = Counter(
            f"{_PREFIX}_answers_total",
            "Answers to decisions, one per target, by outcome.",
            ("outcome",),
            registry=registry,
        )
        self._answer_seconds = Histogram(
            f"{_PREFIX}_answer_seconds",
            "Virtual time from a decision, or its approval, to the answer.",
            buckets=_LAGS,
            registry=registry,
        )
        self._actions = Counter(
            f"{_PREFIX}_actions_total",
            "Creations and deletions of objects, by outcome.",
            ("action", "outcome"),
            registry=registry,
        )
        self._pass_seconds = Histogram(
            f"{_PREFIX}_pass_seconds",
            "Time of one pass over one workload.",
            buckets=_LAGS,
            registry=registry,
        )
        workloads = Gauge(
            f"{_PREFIX}_workloads",
            "Workloads of this instance, by what may become of their replicas.",
            ("scaling",),
            registry=registry,
        )
        self.free, self.frozen = workloads.labels("free"), workloads.labels("frozen")

    def answered(self, outcome: ApplyOutcome, lag_ms: int) -> None:
        """A decision was answered, so long after it was made or approved."""
        self._answers.labels(outcome.value.replace(" ", "_")).inc()
        self._answer_seconds.observe(max(lag_ms, 0) / 1000)

    def acted(self, action: Action, outcome: Outcome) -> None:
        """Something was created or deleted, or was not."""
        self._actions.labels(action.value, outcome.value).inc()

    @contextmanager
    def passing(self) -> Iterator[None]:
        """Time one pass, however it ends."""
        started = time.perf_counter()
        try:
            yield
        finally:
            self._pass_seconds.observe(time.perf_counter() - started)
