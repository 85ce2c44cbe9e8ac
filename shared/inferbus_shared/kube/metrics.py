"""What a service measures about its work with the API server.

Labels are verbs, kinds and status codes: their number is bounded by the registry of kinds.
"""

from prometheus_client import CollectorRegistry, Counter, Gauge

from inferbus_contracts.services import Service
from inferbus_shared.bus.metrics import metric_prefix


class KubeMetrics:
    """Calls, events and lists, what went wrong, and what can't be read."""

    def __init__(
        self, service: Service | None = None, registry: CollectorRegistry | None = None
    ) -> None:
        """Without a registry it counts for nobody."""
        prefix = f"{metric_prefix(service) if service else 'inferbus'}_kube"
        registry = registry or CollectorRegistry()
        self.calls = Counter(
            f"{prefix}_calls_total",
            "Calls to the API server, by method, kind and HTTP status; 0: no answer came.",
            ("method", "kind", "status"),
            registry=registry,
        )
        self._counted: dict[tuple[str, str, int], Counter] = {}
        self.events = Counter(
            f"{prefix}_watch_events_total",
            "Events of watches, by kind and type.",
            ("kind", "type"),
            registry=registry,
        )
        self.lists = Counter(
            f"{prefix}_lists_total", "Complete lists of a kind.", ("kind",), registry=registry
        )
        self.failures = Counter(
            f"{prefix}_watch_failures_total",
            "Lists and watches that failed, by kind and error code.",
            ("kind", "code"),
            registry=registry,
        )
        self.malformed = Counter(
            f"{prefix}_malformed_objects_total",
            "Objects that could not be read and were left out, by kind.",
            ("kind",),
            registry=registry,
        )
        self.objects = Gauge(
            f"{prefix}_objects", "Objects in memory, by kind.", ("kind",), registry=registry
        )

    def called(self, method: str, kind: str, status: int) -> None:
        """Count a call; looking its labels up would cost more than the rest of it."""
        labels = (method, kind, status)
        counter = self._counted.get(labels)
        if counter is None:
            counter = self._counted[labels] = self.calls.labels(method, kind, str(status))
        counter.inc()
