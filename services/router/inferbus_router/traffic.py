"""The counters behind the router's metrics: plain integers, cheap to add to on the hot path.

They are folded into Prometheus' families only when somebody asks (`metrics`). Invariant: label
values come from the routing table or from fixed sets, never from what clients send, so that nobody
can make the number of series grow.
"""

from bisect import bisect_left
from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple

from inferbus_contracts.events.demand import LATENCY_BOUNDS_MS
from inferbus_router.errors import ErrorType, metric_error_type
from inferbus_router.record import Destination

_KNOWN_PATHS = frozenset(
    {
        "/v1/audio/speech",
        "/v1/audio/transcriptions",
        "/v1/audio/translations",
        "/v1/chat/completions",
        "/v1/completions",
        "/v1/embeddings",
        "/v1/images/edits",
        "/v1/images/generations",
        "/v1/messages",
        "/v1/models",
        "/v1/moderations",
        "/v1/rerank",
        "/v1/responses",
        "/v1/score",
    }
)


def path_label(path: str) -> str:
    """The path where the API defines it, else `other`."""
    return path if path in _KNOWN_PATHS else "other"


class Histogram:
    """Counts per bound of `LATENCY_BOUNDS_MS`, the last beyond them, and the sum."""

    def __init__(self) -> None:
        self.counts = [0] * (len(LATENCY_BOUNDS_MS) + 1)
        self.sum_ms = 0

    def observe(self, value_ms: int, times: int = 1) -> int:
        """Add a value `times` times; returns the index of its bucket."""
        index = bisect_left(LATENCY_BOUNDS_MS, value_ms)
        self.counts[index] += times
        self.sum_ms += value_ms * times
        return index

    def add(self, other: "Histogram") -> None:
        """Add all that another one counted."""
        self.counts = [one + two for one, two in zip(self.counts, other.counts, strict=True)]
        self.sum_ms += other.sum_ms


class Outcome(NamedTuple):
    """How a request ended, as labels."""

    path: str
    status: int
    error_type: str


class Phase(StrEnum):
    """A half of a request that two endpoints serve."""

    PREFILL = "prefill"
    DECODE = "decode"


class PhaseKey(NamedTuple):
    """Such halves that ended alike, as labels."""

    phase: Phase
    path: str
    status: int


class OutcomeCount:
    """Requests to one destination that ended alike."""

    def __init__(self) -> None:
        self.requests = 0
        self.input_tokens = 0
        self.output_tokens = 0
        self.duration = Histogram()

    def count(self, duration_ms: int, input_tokens: int, output_tokens: int) -> int:
        """Count a request that ended so; returns the index of its duration's bucket."""
        self.requests += 1
        self.input_tokens += input_tokens
        self.output_tokens += output_tokens
        return self.duration.observe(duration_ms)


class DestinationTraffic:
    """Traffic to one destination."""

    def __init__(self, labels: Destination) -> None:
        self.labels = labels
        self.active = 0
        """Requests that its engines work on."""
        self.retries = 0
        self.ttft = Histogram()
        self.inter_token = Histogram()
        self.outcomes: dict[Outcome, OutcomeCount] = {}
        self.phases: dict[PhaseKey, Histogram] = {}

    def phase(self, phase: Phase, path: str, status: int) -> Histogram:
        """How long that phase took in requests where it ended so; `path` is a `path_label`."""
        return self.phases.setdefault(PhaseKey(phase, path, status), Histogram())

    def outcome(self, path: str, status: int, error: ErrorType | None) -> OutcomeCount:
        """Where requests are counted that ended so; `path` is a `path_label`."""
        key = Outcome(path, status, metric_error_type(error))
        count = self.outcomes.get(key)
        if count is None:
            count = self.outcomes[key] = OutcomeCount()
        return count


class ModelTraffic:
    """Traffic for one model name, wherever it goes."""

    def __init__(self) -> None:
        self.active = 0
        """Requests being served."""
        self.limited: dict[tuple[str, str], int] = {}
        """Requests that a token limit refused, by (side, path)."""


class Traffic:
    """All counters of one router process."""

    def __init__(self) -> None:
        self.arrived = 0
        self.ended = 0
        """Requests, ever."""
        self.models: dict[str, ModelTraffic] = {}
        self._destinations: dict[Destination, DestinationTraffic] = {}

    @property
    def active_requests(self) -> int:
        """Requests being served."""
        return self.arrived - self.ended

    def destinations(self) -> Iterator[DestinationTraffic]:
        """All that were ever used."""
        yield from list(self._destinations.values())

    def to(self, labels: Destination) -> DestinationTraffic:
        """The traffic to a destination."""
        traffic = self._destinations.get(labels)
        if traffic is None:
            traffic = self._destinations[labels] = DestinationTraffic(labels)
        return traffic

    def model(self, model: str) -> ModelTraffic:
        """The traffic for a model that a route serves."""
        traffic = self.models.get(model)
        if traffic is None:
            traffic = self.models[model] = ModelTraffic()
        return traffic

    def forget_routes(self, routes: set[str]) -> None:
        """Drop the counters of destinations that only removed routes led to."""
        for labels, traffic in list(self._destinations.items()):
            if labels.route in routes and not traffic.active:
                del self._destinations[labels]

    def forget_models(self, models: set[str]) -> None:
        """Drop the counters of names that no route serves any more."""
        for model, traffic in list(self.models.items()):
            if model in models and not traffic.active:
                del self.models[model]
