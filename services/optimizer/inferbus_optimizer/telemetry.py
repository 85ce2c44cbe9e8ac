"""What the optimizer measures about itself.

Invariant: labels are words of the contracts, never keys or names that users make up.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from prometheus_client import CollectorRegistry, Counter, Histogram

from inferbus_contracts.base import EventData
from inferbus_contracts.events.scaling import ScalingAllocated
from inferbus_contracts.keys import ObjectKey
from inferbus_optimizer.policy_placement import CUT_OFF
from inferbus_shared.bus.decider import Verdict
from inferbus_shared.bus.messages import Received

_PREFIX = "inferbus_optimizer"
_BOUNDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0)


class AllocationMetrics:
    """Solves, how long they take, and what allocations cost over the least possible."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._seconds = Histogram(
            f"{_PREFIX}_solve_seconds",
            "Time to decide about one event of a mix.",
            buckets=_BOUNDS,
            registry=registry,
        )
        self._allocations = Counter(
            f"{_PREFIX}_allocations_total",
            "Allocations, by binding limiter, and whether the least cost is proven.",
            ("binding", "proven"),
            registry=registry,
        )
        self._cost = Counter(
            f"{_PREFIX}_cost_total",
            "Cost of the allocations, added up over them.",
            registry=registry,
        )
        self._extra_cost = Counter(
            f"{_PREFIX}_extra_cost_total",
            "What they cost over the least possible, added up over them.",
            registry=registry,
        )

    @contextmanager
    def solving(self) -> Iterator[None]:
        """Time one decision."""
        started = time.perf_counter()
        yield
        self._seconds.observe(time.perf_counter() - started)

    def committed(self, _: ObjectKey, __: Received[EventData], verdict: Verdict) -> None:
        """Something was stored."""
        for said in verdict.decisions:
            data = said.data
            if isinstance(data, ScalingAllocated):
                record = data.record
                proven = not any(CUT_OFF in step.detail for step in record.limiters)
                self._allocations.labels(record.binding.value, str(proven).lower()).inc()
                self._cost.inc(data.cost)
                self._extra_cost.inc(max(data.cost - data.optimal_cost, 0))
