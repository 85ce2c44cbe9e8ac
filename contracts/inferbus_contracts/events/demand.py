"""What the clients ask for, aggregated by the routers."""

from typing import ClassVar

from pydantic import Field

from inferbus_contracts.base import EventData


class ModelDemand(EventData):
    """The traffic of one model during one interval."""

    model: str
    """The model name the clients used."""
    arrivals: int = 0
    completions: int = 0
    errors: int = 0
    prompt_tokens: int = 0
    output_tokens: int = 0
    queued: int = 0
    """Requests that wait in the router at the end of the interval."""
    in_flight: int = 0
    """Requests that engines work on at the end of the interval."""
    ttft_ms_buckets: list[int] = Field(default_factory=list)
    """Counts of time to first token per bound of `LATENCY_BOUNDS_MS`; the last is +Inf."""
    duration_ms_buckets: list[int] = Field(default_factory=list)


LATENCY_BOUNDS_MS = (5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000)
"""Upper bounds of the latency histograms, milliseconds."""


class DemandTotals(EventData):
    """What one router has counted for a target, over all models, since it started.

    Whoever reads them may leave out events: the difference of two is what came between them.
    """

    arrivals: int = 0
    completions: int = 0
    prompt_tokens: int = 0
    output_tokens: int = 0
    ttft_ms_buckets: list[int] = Field(default_factory=list)
    """As those of `ModelDemand`."""


class RouterDemand(EventData):
    """Traffic to a target during one interval, as one router saw it."""

    router: str
    interval_start_ms: int
    interval_ms: int
    models: list[ModelDemand]


class DemandObserved(RouterDemand):
    """One second; only while there is traffic."""

    event_type: ClassVar[str] = "demand.observed"

    totals: DemandTotals | None = None
    """With the interval included."""


class DemandSummed(RouterDemand):
    """Ten seconds, kept for weeks."""

    event_type: ClassVar[str] = "demand.summed"


class DemandPending(EventData):
    """A request is held because its target has no replica."""

    event_type: ClassVar[str] = "demand.pending"

    router: str
    model: str
    waiting: int
    """Requests held at the moment."""
    since_ms: int
    """Arrival of the oldest of them."""
