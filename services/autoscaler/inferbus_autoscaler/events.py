"""What the decider hears, reduced to what its rules read.

Invariant: an event is plain finite JSON data of bounded size (counts instead of lists of pods), so
that a decision record can embed it whole.
"""

import math
from dataclasses import dataclass

from inferbus_contracts.deciding import Applied, Origin, Woken
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
    """Per second over all pods; mixes only, None unless every pod that was read gave it."""
    waiting: int | None = None
    """Requests that wait for their turn in the engines; mixes only, None likewise."""

    def metric(self, name: str) -> MetricValue | None:
        """The value of one metric; None where the sample lacks it."""
        return next((metric for metric in self.metrics if metric.name == name), None)


@dataclass(frozen=True, kw_only=True)
class Sampled(Origin):
    """One round of samples over the targets of a policy."""

    taken_at_ms: int
    readings: tuple[TargetReading, ...] = ()

    def reading(self, target: str) -> TargetReading | None:
        """The part of one target; None where the round left it out."""
        return next((reading for reading in self.readings if reading.target == target), None)


@dataclass(frozen=True, kw_only=True)
class Demanded(Origin):
    """Traffic, or a held request, seen by a router; no rule of this decider reads it."""


Event = Sampled | Applied | Woken | Demanded


def sampled(data: MetricsSampled, origin: Origin) -> Sampled:
    """The event of a `metrics.sampled` body."""
    return Sampled(
        sequence=origin.sequence,
        causes=origin.causes,
        taken_at_ms=data.taken_at_ms,
        readings=tuple(_reading(sample) for sample in data.targets),
    )


_MOST_WAITING = 1_000_000


def _reading(sample: TargetSample) -> TargetReading:
    tokens = _whole(sample, OUTPUT_TOKENS, MetricKind.RATE)
    waiting = _whole(sample, WAITING_REQUESTS, MetricKind.GAUGE)
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


def _whole(sample: TargetSample, name: str, kind: MetricKind) -> float | None:
    """A value beside the policy's metrics that every pod has a part in."""
    for metric in sample.beside or ():
        if metric.name == name and metric.kind is kind and math.isfinite(metric.value):
            return metric.value if metric.pods == sample.ready_pods else None
    return None


def _value(metric: MetricAggregate) -> MetricValue:
    return MetricValue(
        name=metric.name,
        kind=metric.kind,
        value=metric.value if math.isfinite(metric.value) else None,
        idle=metric.kind is MetricKind.QUANTILE and metric.observations == 0,
    )
