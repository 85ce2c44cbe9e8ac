"""What the engines' pages say of the requests that are inside them.

Invariant: a sample that says the same as the one before changes nothing until that gets old.
"""

from dataclasses import dataclass

from inferbus_autoscaler.events import COMPLETED, WAITING, Sampled

_REFRESH_MS = 20_000
_DIGITS = "{:.3g}"


@dataclass(frozen=True, kw_only=True)
class Engines:
    """The last sample, over all targets of a policy."""

    sampled_ms: int | None = None
    """When it was taken, or a little earlier; None before the first."""
    waiting: int = 0
    """Requests that wait for their turn."""
    completed: float | None = None
    """Requests per second; None where no engine counts them."""
    whole: bool = False
    """Every pod that should have answered did."""

    def read(self, sample: Sampled, *, busy: bool) -> "Engines":
        """The engines after a sample; themselves where it says nothing new.

        That the same was said again is noted now and then, and only while there is traffic.
        """
        new = Engines(
            sampled_ms=sample.taken_at_ms,
            waiting=round(_total(sample, WAITING) or 0),
            completed=_rounded(_total(sample, COMPLETED)),
            whole=not any(reading.missing_pods for reading in sample.readings),
        )
        known_ms = self.sampled_ms
        if known_ms is None or new._said != self._said:
            return new
        return new if busy and sample.taken_at_ms - known_ms >= _REFRESH_MS else self

    def fresh(self, now_ms: int, stale_ms: int, sampled_ms: int | None = None) -> bool:
        """Whether there is a sample that is whole and recent.

        `sampled_ms` is when one was taken that said the same; None: none since.
        """
        last_ms = self.sampled_ms if sampled_ms is None else sampled_ms
        return self.whole and last_ms is not None and now_ms - last_ms <= stale_ms

    @property
    def _said(self) -> tuple[int, float | None, bool]:
        return self.waiting, self.completed, self.whole


def _total(sample: Sampled, name: str) -> float | None:
    """A metric's sum over the targets; None where none has it."""
    values = [metric.value for reading in sample.readings if (metric := reading.metric(name))]
    known = [value for value in values if value is not None and value >= 0]
    return sum(known) if known else None


def _rounded(rate: float | None) -> float | None:
    """Three digits: more would be noise in the log."""
    return None if rate is None else float(_DIGITS.format(rate))
