"""The plugins that go by load: least-request, least-latency, gpu-usage and random (spec 3.3).

Invariant: an engine that says nothing is neither favoured nor left out; its score is what the
router knows by itself, or the middle.
"""

from collections.abc import Callable, Sequence

from inferbus_router.policy_plugins import HIGHEST_SCORE, Candidate, PluginRequest

DEFAULT_MAX_WAITING_REQUESTS = 10
DEFAULT_LATENCY_WEIGHT = 0.5
_MIDDLE = HIGHEST_SCORE // 2
_QUEUED_WEIGHT = 100
"""A request that waits counts as much as this many that run."""


class LeastRequestFilter:
    """Leaves out engines whose queue is full."""

    name = "least-request"

    def __init__(self, max_waiting_requests: int = DEFAULT_MAX_WAITING_REQUESTS) -> None:
        """An engine with that many waiting requests gets no more; greater than 0."""
        self.max_waiting_requests = max_waiting_requests

    def keeps(self, request: PluginRequest, candidate: Candidate) -> bool:
        """See `FilterPlugin`."""
        del request
        waiting = candidate.engine.waiting
        return waiting is None or waiting < self.max_waiting_requests


class LeastRequestScore:
    """Prefers few requests in flight, and above all few of them waiting."""

    name = "least-request"

    def scores(self, request: PluginRequest, candidates: Sequence[Candidate]) -> list[int]:
        """See `ScorePlugin`.

        What is in flight and not known to run counts as waiting.
        """
        del request
        loads = [_load(candidate) for candidate in candidates]
        most = max(loads, default=0)
        if not most:
            return [HIGHEST_SCORE] * len(loads)
        return [int((most - load) / most * HIGHEST_SCORE) for load in loads]


def _load(candidate: Candidate) -> float:
    in_flight = candidate.in_flight
    return in_flight + _QUEUED_WEIGHT * max(in_flight - (candidate.engine.running or 0), 0)


class LeastLatency:
    """Prefers engines that have been fast, to the first token and from token to token."""

    name = "least-latency"

    def __init__(self, ttft_weight: float = DEFAULT_LATENCY_WEIGHT) -> None:
        """`ttft_weight`, 0 to 1, is the part of the time to first token in the score."""
        self.ttft_weight = ttft_weight

    def scores(self, request: PluginRequest, candidates: Sequence[Candidate]) -> list[int]:
        """See `ScorePlugin`; engines without both latencies get the middle."""
        del request
        latencies = [_latencies(candidate) for candidate in candidates]
        known = [pair for pair in latencies if pair is not None]
        if not known:
            return [_MIDDLE] * len(candidates)
        ttft, tpot = _Range([pair[0] for pair in known]), _Range([pair[1] for pair in known])
        weight = self.ttft_weight
        return [
            _MIDDLE
            if pair is None
            else int(weight * ttft.rank(pair[0]) + (1 - weight) * tpot.rank(pair[1]))
            for pair in latencies
        ]


def _latencies(candidate: Candidate) -> tuple[float, float] | None:
    ttft, tpot = candidate.engine.ttft_seconds, candidate.engine.tpot_seconds
    return (ttft, tpot) if ttft and tpot and ttft > 0 and tpot > 0 else None


class _Range:
    """Between the least and the greatest of some values."""

    def __init__(self, values: Sequence[float]) -> None:
        self._least, self._greatest = min(values), max(values)

    def rank(self, value: float) -> float:
        """100 for the least, 0 for the greatest."""
        if self._least == self._greatest:
            return HIGHEST_SCORE
        return HIGHEST_SCORE * (self._greatest - value) / (self._greatest - self._least)


class GpuUsage:
    """Prefers engines whose KV cache has room."""

    name = "gpu-usage"

    def scores(self, request: PluginRequest, candidates: Sequence[Candidate]) -> list[int]:
        """See `ScorePlugin`."""
        del request
        return [_room(candidate.engine.kv_cache_usage) for candidate in candidates]


def _room(usage: float | None) -> int:
    return _MIDDLE if usage is None else int((1 - min(max(usage, 0.0), 1.0)) * HIGHEST_SCORE)


class RandomScore:
    """Any endpoint may come first."""

    name = "random"

    def __init__(self, chance: Callable[[], float]) -> None:
        """`chance` draws evenly from [0, 1)."""
        self._chance = chance

    def scores(self, request: PluginRequest, candidates: Sequence[Candidate]) -> list[int]:
        """See `ScorePlugin`."""
        del request
        return [int(self._chance() * (HIGHEST_SCORE + 1)) for _ in candidates]
