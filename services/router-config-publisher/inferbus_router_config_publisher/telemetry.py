"""What the publisher measures about itself and about the routers.

Invariant: no label holds a key or anything else that users make up.
"""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

_PREFIX = "inferbus_router_config_publisher"
_BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class TableMetrics:
    """The table and its publication."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.parts = Gauge(
            f"{_PREFIX}_parts", "Routes and servers in the table.", registry=registry
        )
        self.revision = Gauge(
            f"{_PREFIX}_revision", "Revision of the table on the bus.", registry=registry
        )
        self.published = Counter(
            f"{_PREFIX}_published_parts_total", "Parts that were published.", registry=registry
        )
        self._batches = Counter(
            f"{_PREFIX}_batches_total",
            "Batches of parts, by outcome.",
            ("outcome",),
            registry=registry,
        )
        self.stored = self._batches.labels("stored")
        self.lost = self._batches.labels("lost")
        """Another instance published first."""
        self.failed = self._batches.labels("failed")
        self.seconds = Histogram(
            f"{_PREFIX}_publication_seconds",
            "Time from the first change of a publication to its being stored, real time.",
            buckets=_BOUNDS,
            registry=registry,
        )


class RouterMetrics:
    """What routers acknowledge."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.routers = Gauge(f"{_PREFIX}_routers", "Routers that are known.", registry=registry)
        self.behind = Gauge(
            f"{_PREFIX}_routers_behind", "Routers that stay behind the table.", registry=registry
        )
        self.oldest = Gauge(
            f"{_PREFIX}_oldest_served_revision",
            "The oldest revision that a router serves.",
            registry=registry,
        )
        self.lag = Histogram(
            f"{_PREFIX}_router_lag_seconds",
            "Time from publication to being served, as routers tell it.",
            buckets=_BOUNDS,
            registry=registry,
        )
