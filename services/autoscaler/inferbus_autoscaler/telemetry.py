"""What the autoscaler measures about itself.

Invariant: labels are words of the contracts (limiters, modes), never keys or names that users make
up: what single targets want stands in their status and in `inferbus top`.
"""

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from inferbus_contracts.base import EventData
from inferbus_contracts.events.metrics import MetricsSampled
from inferbus_contracts.events.scaling import ScalingDecided, ScalingDemanded
from inferbus_contracts.keys import ObjectKey
from inferbus_shared.bus.decider import Verdict
from inferbus_shared.bus.messages import Received

_PREFIX = "inferbus_autoscaler"
_LAGS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)

Looks = tuple[str, str]
"""Mode and binding limiter of a decision."""


class DecisionMetrics:
    """Decisions by limiter and mode, the targets they leave behind, and how late they come."""

    def __init__(self, registry: CollectorRegistry, now_ms: Callable[[], int]) -> None:
        """`now_ms` is virtual time."""
        self._now_ms = now_ms
        self._last: dict[ObjectKey, dict[str, Looks]] = {}
        """By key of the state, and of what is decided about: of roles there are several."""
        self._decisions = Counter(
            f"{_PREFIX}_decisions_total",
            "Decisions about targets and mixes, by mode, binding limiter and what happens to them.",
            ("mode", "binding", "apply"),
            registry=registry,
        )
        self._targets = Gauge(
            f"{_PREFIX}_targets",
            "Targets and mixes that this instance decided about, by their last decision.",
            ("mode", "binding"),
            registry=registry,
        )
        self._lag = Histogram(
            f"{_PREFIX}_sample_lag_seconds",
            "Virtual time from taking a sample to storing what follows from it.",
            buckets=_LAGS,
            registry=registry,
        )
        self.refused = Gauge(
            f"{_PREFIX}_refused_policies",
            "Policies that can't be decided by.",
            registry=registry,
        )

    def committed(self, key: ObjectKey, event: Received[EventData], verdict: Verdict) -> None:
        """Something was stored."""
        if isinstance(event.data, MetricsSampled):
            self._lag.observe(max(self._now_ms() - event.data.taken_at_ms, 0) / 1000)
        if not verdict.state.get("owner"):
            for before in self._last.pop(key, {}).values():
                self._targets.labels(*before).dec()
        for said in verdict.decisions:
            data = said.data
            if isinstance(data, ScalingDecided | ScalingDemanded):
                looks = (data.mode.value, data.record.binding.value)
                self._decisions.labels(*looks, data.apply).inc()
                self._looks(key, said.key, looks)

    def _looks(self, key: ObjectKey, about: str, looks: Looks) -> None:
        """A target or mix looks like this from now on; `key` is that of its state."""
        last = self._last.setdefault(key, {})
        if about in last:
            self._targets.labels(*last[about]).dec()
        self._targets.labels(*looks).inc()
        last[about] = looks
