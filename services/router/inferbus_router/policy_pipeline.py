"""Filters first, then scores added up by weight: the reference's scheduler (routing spec 3.1).

Where the reference draws lots or fails, the default rule goes on: it chooses among all that are
best, and so among all that are left where no score has anything to say (its defects 12 and 23).
Invariant: as long as a filter leaves an endpoint, there is one to choose.
"""

from collections.abc import Callable, Hashable, Sequence

from inferbus_router.policy_plugins import (
    Candidate,
    FilterPlugin,
    PluginRequest,
    Remembering,
    ScorePlugin,
)

Lap = Callable[[str, str], None]
"""Is called with the name and the type (`filter`, `score`) of each plugin that has just run."""


class FilteredOutError(Exception):
    """No endpoint is left after this filter."""

    def __init__(self, filter_name: str) -> None:
        super().__init__(filter_name)
        self.filter_name = filter_name


class Pipeline:
    """Plugins in their order."""

    def __init__(
        self, filters: Sequence[FilterPlugin], scores: Sequence[tuple[ScorePlugin, int]]
    ) -> None:
        """`scores` come with their weights, 0 or greater."""
        self.filters = tuple(filters)
        self.scores = tuple(scores)
        self.remembering: tuple[Remembering, ...] = tuple(
            plugin for plugin, _ in scores if isinstance(plugin, Remembering)
        )

    def admitted(
        self, request: PluginRequest, candidates: Sequence[Candidate], lap: Lap
    ) -> Sequence[Candidate]:
        """Those that every filter keeps; raises `FilteredOutError` where none is.

        Prefill and decode endpoints of a pair go through the same filters, each list by itself.
        """
        for plugin in self.filters:
            candidates = [each for each in candidates if plugin.keeps(request, each)]
            lap(plugin.name, "filter")
            if not candidates:
                raise FilteredOutError(plugin.name)
        return candidates

    def best(
        self, request: PluginRequest, candidates: Sequence[Candidate], lap: Lap
    ) -> Sequence[Candidate]:
        """Those with the highest total of what `admitted` leaves; raises as it does."""
        candidates = self.admitted(request, candidates, lap)
        totals = self.totals(request, candidates, lap)
        highest = max(totals, default=0)
        return [each for each, total in zip(candidates, totals, strict=True) if total == highest]

    def totals(
        self, request: PluginRequest, candidates: Sequence[Candidate], lap: Lap
    ) -> list[int]:
        """The weighted sum of all scores, for each candidate."""
        totals = [0] * len(candidates)
        for plugin, weight in self.scores:
            scores = plugin.scores(request, candidates)
            lap(plugin.name, "score")
            if scores is not None and weight:
                totals = [
                    total + weight * score for total, score in zip(totals, scores, strict=True)
                ]
        return totals

    def served(self, request: PluginRequest, endpoint: Hashable) -> None:
        """The endpoint has answered the request."""
        for plugin in self.remembering:
            plugin.served(request, endpoint)

    def forget(self, endpoint: Hashable) -> None:
        """The endpoint is gone."""
        for plugin in self.remembering:
            plugin.forget(endpoint)
