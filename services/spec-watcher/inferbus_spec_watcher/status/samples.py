"""Which metrics the last sample of each target has a value of, and when it was taken.

Invariant: numbers are left out, so that load which comes and goes is no news; and so is what is
wrong with a sample, which its collector tells of the policy (ADR 0017).
"""

from inferbus_contracts.events.metrics import MetricsSampled
from inferbus_contracts.keys import ObjectKey

STALE_MS = 60_000
"""A target that was not sampled for that long is told as such, as the autoscaler scales nothing
down on it then (its setting STALE_SECONDS)."""


class Samples:
    """The last sample of each target."""

    def __init__(self) -> None:
        self._last: dict[ObjectKey, frozenset[str]] = {}
        self._taken_ms: dict[ObjectKey, int] = {}

    def take(self, data: MetricsSampled) -> list[ObjectKey]:
        """Fold one round in; the targets of which something else is known now."""
        news = []
        for target in data.targets:
            key = ObjectKey.parse(target.target)
            metrics = frozenset(metric.name for metric in target.metrics)
            was_stale = data.taken_at_ms - self.taken_ms(key) > STALE_MS
            if was_stale or self._last.get(key) != metrics:
                news.append(key)
            self._last[key] = metrics
            self._taken_ms[key] = max(data.taken_at_ms, self.taken_ms(key))
        return news

    def metrics(self, target: ObjectKey) -> frozenset[str]:
        """The policy's names of those that have a value in a target's last sample."""
        return self._last.get(target, frozenset())

    def taken_ms(self, target: ObjectKey) -> int:
        """When the last sample of a target was taken; 0 without one."""
        return self._taken_ms.get(target, 0)
