"""What the engines report, aggregated per policy target."""

from enum import StrEnum
from typing import ClassVar

from pydantic import Field

from inferbus_contracts.base import EventData

OUTPUT_TOKENS = "output-tokens"
"""Beside a mix's metrics: tokens that were generated, per second."""
WAITING_REQUESTS = "waiting-requests"
"""Beside a mix's metrics: requests that wait in the engines."""


class MetricKind(StrEnum):
    """How a value came about, and so what may be done with it."""

    GAUGE = "gauge"
    RATE = "rate"
    """Increase of a counter per second."""
    QUANTILE = "quantile"
    """A quantile of histogram buckets that were merged over the pods first."""
    EXTERNAL_TOTAL = "total"
    EXTERNAL_AVERAGE = "average"
    EXTERNAL_UTILISATION = "utilisation"


class MetricAggregate(EventData):
    """One metric over the pods of one target."""

    name: str
    """The policy's name of the metric."""
    kind: MetricKind
    value: float
    """Sum over the pods (gauge, rate), the quantile, or the external value."""
    pods: int = 0
    """How many pods gave a value; 0 for external metrics."""
    buckets: list[tuple[float, float]] | None = None
    """Merged cumulative (upper bound, count) pairs of the window; +Inf is the total, left out."""
    observations: float | None = None
    """Total count of the histogram window."""


class TargetSample(EventData):
    """One target's metrics and the state of the pods they came from."""

    target: str
    """Key of the target."""
    metrics: list[MetricAggregate] = Field(default_factory=list)
    ready_pods: int = 0
    """Pods that were scraped with success."""
    unready_pods: int = 0
    """Starting pods: capacity to come."""
    failed_pods: int = 0
    missing: list[str] = Field(default_factory=list)
    """Ready pods that could not be scraped."""
    problems: list[str] = Field(default_factory=list)
    beside: list[MetricAggregate] | None = None
    """What no policy asked for; of a mix: `OUTPUT_TOKENS` and `WAITING_REQUESTS`."""


class MetricsSampled(EventData):
    """One round over the targets of a policy.

    Keyed by the target; by the policy where it mixes targets, or keeps roles in proportion.
    """

    event_type: ClassVar[str] = "metrics.sampled"

    policy: str
    """Key of the policy (binding) that asked for it."""
    taken_at_ms: int
    window_ms: int
    """Length of the window of rates and quantiles."""
    targets: list[TargetSample]


class MetricsAssessed(EventData):
    """What keeps the samples of a policy from being whole; written when that changes."""

    event_type: ClassVar[str] = "metrics.assessed"

    policy_uid: str
    """Of the policy (binding): a namesake that comes later is another one."""
    problems: list[str] = Field(default_factory=list)
    """Which pod, page or query of which target, and why; empty where nothing is wrong any more."""
