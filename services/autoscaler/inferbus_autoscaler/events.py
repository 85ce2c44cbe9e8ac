"""What the decider hears, reduced to what its rules read.

Invariant: an event is plain finite JSON data of bounded size (counts instead of lists of pods), so
that a decision record can embed it whole.
"""

import math
from dataclasses import dataclass, field
from functools import reduce
from itertools import zip_longest

from inferbus_contracts.deciding import Applied, Origin, Woken
from inferbus_contracts.events.demand import (
    DemandObserved,
    DemandPending,
    DemandTotals,
    ModelDemand,
    RouterDemand,
)
from inferbus_contracts.events.metrics import (
    OUTPUT_TOKENS,
    WAITING_REQUESTS,
    MetricAggregate,
    MetricKind,
    MetricsSampled,
    TargetSample,
)


@dataclass(frozen=True, kw_only=True)
class MetricValue:
    """One metric over the pods of one target."""

    name: str
    kind: MetricKind
    value: float | None
    """None where the reported value wasn't a finite number."""
    idle: bool = False
    """True for a quantile of no observations: there was no load."""


@dataclass(frozen=True, kw_only=True)
class TargetReading:
    """One target's part of a sample."""

    target: str
    metrics: tuple[MetricValue, ...] = ()
    ready_pods: int = 0
    unready_pods: int = 0
    failed_pods: int = 0
    missing_pods: int = 0
    """Ready pods that couldn't be scraped."""
    output_tokens: float | None = None
    """Per second over all pods; None where nobody asked, or a pod that was read didn't give it."""
    waiting: int | None = None
    """Requests that wait for their turn in the engines; None likewise."""

    def metric(self, name: str) -> MetricValue | None:
        """The value of one metric; None where the sample lacks it."""
        for metric in self.metrics:
            if metric.name == name:
                return metric
        return None


@dataclass(frozen=True, kw_only=True)
class Sampled(Origin):
    """One round of samples over the targets of a policy."""

    taken_at_ms: int
    readings: tuple[TargetReading, ...] = ()

    def reading(self, target: str) -> TargetReading | None:
        """The part of one target; None where the round left it out."""
        return next((reading for reading in self.readings if reading.target == target), None)


@dataclass(frozen=True, kw_only=True)
class Counters:
    """What a router counts of a target's requests."""

    requests: int = 0
    """That came in."""
    completions: int = 0
    prompt_tokens: int = 0
    output_tokens: int = 0
    first_tokens: tuple[int, ...] = ()
    """Requests by the time to their first token, one per bound and one above the last."""

    def since(self, before: "Counters") -> "Counters":
        """What was counted after `before`."""
        return self._with(before, -1)

    def plus(self, more: "Counters") -> "Counters":
        """Both together."""
        return self._with(more, 1)

    def _with(self, other: "Counters", sign: int) -> "Counters":
        pairs = zip_longest(self.first_tokens, other.first_tokens, fillvalue=0)
        return Counters(
            requests=self.requests + sign * other.requests,
            completions=self.completions + sign * other.completions,
            prompt_tokens=self.prompt_tokens + sign * other.prompt_tokens,
            output_tokens=self.output_tokens + sign * other.output_tokens,
            first_tokens=tuple(one + sign * two for one, two in pairs),
        )


@dataclass(frozen=True, kw_only=True)
class Demanded(Origin):
    """Traffic, or requests that are held for want of a replica, seen by a router."""

    at_ms: int = 0
    """Until when the router has counted."""
    router: str = ""
    totals: Counters | None = None
    """Since the router started; None where the event counts nothing."""
    interval: Counters = field(default_factory=Counters)
    """In the interval that the event is about."""
    interval_ms: int = 0
    queued: int = 0
    """Requests that wait in the router."""
    held: int = 0
    """Requests that wait for the first replica."""


Event = Sampled | Applied | Woken | Demanded


def sampled(data: MetricsSampled, origin: Origin) -> Sampled:
    """The event of a `metrics.sampled` body."""
    return Sampled(
        sequence=origin.sequence,
        causes=origin.causes,
        taken_at_ms=data.taken_at_ms,
        readings=tuple(_reading(sample) for sample in data.targets),
    )


def demanded(data: RouterDemand, time_ms: int, origin: Origin) -> Demanded:
    """The event of a `demand.observed` body, or of a sum, which counts nothing anew."""
    totals = data.totals if isinstance(data, DemandObserved) else None
    return Demanded(
        sequence=origin.sequence,
        causes=origin.causes,
        at_ms=time_ms,
        router=data.router,
        totals=_counters(totals) if totals else None,
        interval=reduce(Counters.plus, map(_counters, data.models), Counters()),
        interval_ms=data.interval_ms,
        queued=sum(model.queued for model in data.models),
    )


def held(data: DemandPending, time_ms: int, origin: Origin) -> Demanded:
    """The event of a `demand.pending` body."""
    return Demanded(
        sequence=origin.sequence,
        causes=origin.causes,
        at_ms=time_ms,
        router=data.router,
        held=data.waiting,
    )


def _counters(counted: ModelDemand | DemandTotals) -> Counters:
    return Counters(
        requests=counted.arrivals,
        completions=counted.completions,
        prompt_tokens=counted.prompt_tokens,
        output_tokens=counted.output_tokens,
        first_tokens=tuple(counted.ttft_ms_buckets),
    )


WAITING = "kthena:num_requests_waiting"
COMPLETED = "kthena:request_success_total"
GENERATED = "kthena:generation_tokens_total"
OBJECTIVE_METRICS = (WAITING, "kthena:num_requests_running", COMPLETED, GENERATED)
"""Names under which a policy without metrics of its own is sampled."""

_MOST_WAITING = 1_000_000


def _reading(sample: TargetSample) -> TargetReading:
    tokens = _whole(sample, (OUTPUT_TOKENS, GENERATED), MetricKind.RATE)
    waiting = _whole(sample, (WAITING_REQUESTS, WAITING), MetricKind.GAUGE)
    return TargetReading(
        target=sample.target,
        metrics=tuple(_value(metric) for metric in sample.metrics),
        ready_pods=sample.ready_pods,
        unready_pods=sample.unready_pods,
        failed_pods=sample.failed_pods,
        missing_pods=len(sample.missing),
        output_tokens=None if tokens is None else float(f"{tokens:.4g}"),
        waiting=None if waiting is None else min(round(waiting), _MOST_WAITING),
    )


def _whole(sample: TargetSample, names: tuple[str, ...], kind: MetricKind) -> float | None:
    """A value beside the policy's metrics, or in their place, that every pod has a part in."""
    for metric in (*(sample.beside or ()), *sample.metrics):
        if metric.name in names and metric.kind is kind and math.isfinite(metric.value):
            return metric.value if metric.pods == sample.ready_pods else None
    return None


def _value(metric: MetricAggregate) -> MetricValue:
    return MetricValue(
        name=metric.name,
        kind=metric.kind,
        value=metric.value if math.isfinite(metric.value) else None,
        idle=metric.kind is MetricKind.QUANTILE and metric.observations == 0,
    )
