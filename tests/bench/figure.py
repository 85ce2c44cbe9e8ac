"""One measured number, what was promised about it, and whether that holds. Pure.

A figure is never shown without its configuration. Invariant: the verdict is the best of the
attempts, and every attempt is shown beside it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

Detail = float | int | str
"""A number or a few words beside a figure."""


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One number; smaller is better wherever there is a limit, unless it says otherwise."""

    name: str
    value: float
    unit: str
    limit: float | None = None
    """The most that is promised; None where nothing is, and the number only informs."""
    more_is_better: bool = False
    """True for a rate: `limit` is then the least that is promised."""
    meaning: str
    """What is measured, from where to where."""
    configuration: Mapping[str, Detail] = field(default_factory=dict)
    detail: Mapping[str, Detail] = field(default_factory=dict)
    """Other numbers of the same measurement."""

    @property
    def holds(self) -> bool:
        """Whether the promise is kept; true where there is none."""
        if self.limit is None:
            return True
        return self.value >= self.limit if self.more_is_better else self.value <= self.limit


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """A figure over all attempts at it."""

    attempts: Sequence[Figure]
    """At least one, in the order they were made."""

    @property
    def figure(self) -> Figure:
        """The one that counts: the best where there is a limit, else the last."""
        last = self.attempts[-1]
        if last.limit is None:
            return last
        best = max if last.more_is_better else min
        return best(self.attempts, key=lambda one: one.value)

    @property
    def holds(self) -> bool:
        """Whether the promise is kept."""
        return self.figure.holds


def outcomes(attempts: Sequence[Sequence[Figure]]) -> list[Outcome]:
    """The figures of a measurement that was made several times, in the order of the first."""
    by_name: dict[str, list[Figure]] = {}
    for attempt in attempts:
        for figure in attempt:
            by_name.setdefault(figure.name, []).append(figure)
    return [Outcome(attempts=tuple(found)) for found in by_name.values()]


def quantile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least `share` (0 to 1) of the values don't exceed (nearest rank).

    Raises `ValueError` without values.
    """
    if not values:
        raise ValueError("no value was measured")
    ranked = sorted(values)
    rank = -(-round(share * 1_000_000) * len(ranked) // 1_000_000)
    return ranked[max(rank, 1) - 1]
