"""What the last sample of each target could say: which metrics, from which pods, when.

Invariant: numbers are left out, so that load which comes and goes is no news.
"""

from inferbus_contracts.events.metrics import MetricsSampled, TargetSample
from inferbus_contracts.keys import ObjectKey
from inferbus_spec_watcher.status.view import Sample

STALE_MS = 60_000
"""A target that was not sampled for that long is told as such, as the autoscaler scales nothing
down on it then (its setting STALE_SECONDS)."""

_MOST_PROBLEMS = 3


class Samples:
    """The last sample of each target."""

    def __init__(self) -> None:
        self._last: dict[ObjectKey, Sample] = {}
        self._taken_ms: dict[ObjectKey, int] = {}

    def take(self, data: MetricsSampled) -> list[ObjectKey]:
        """Fold one round in; the targets of which something else is known now."""
        news = []
        for target in data.targets:
            key, sample = ObjectKey.parse(target.target), _sample(target)
            was_stale = data.taken_at_ms - self.taken_ms(key) > STALE_MS
            if was_stale or self._last.get(key) != sample:
                news.append(key)
            self._last[key] = sample
            self._taken_ms[key] = max(data.taken_at_ms, self.taken_ms(key))
        return news

    def sample(self, target: ObjectKey) -> Sample | None:
        """What the last sample of a target could say; None without one."""
        return self._last.get(target)

    def taken_ms(self, target: ObjectKey) -> int:
        """When the last sample of a target was taken; 0 without one."""
        return self._taken_ms.get(target, 0)


def _sample(target: TargetSample) -> Sample:
    silent = tuple(target.missing)
    return Sample(
        metrics=frozenset(metric.name for metric in target.metrics),
        silent=silent,
        pods=target.ready_pods + len(silent) if silent else 0,
        problems=tuple(target.problems[:_MOST_PROBLEMS]),
    )
