"""Metrics of a policy, and the pages and servers they are read from.

Invariant: a metric has one name, its `key`, whichever version's field gives it (autoscaling spec
1.2 to 1.4).
"""

from fractions import Fraction
from typing import Any

from pydantic import Field

from inferbus_contracts.resources.document import ResourcePart
from inferbus_contracts.resources.metadata import LabelSelector
from inferbus_contracts.resources.scalars import Port, Quantity, parse_quantity, quantity_float


class PolicyMetric(ResourcePart):
    """One metric and what one replica should carry of it."""

    metric_name: str | None = None
    """v0.1.0's name of the field."""
    name: str | None = None
    """v1.0.0's name of the field."""
    target_value: Quantity
    """How much of the metric one replica should carry; above 0."""

    @property
    def key(self) -> str:
        """The metric's name, whichever field gives it; v0.1.0's counts first."""
        return self.metric_name or self.name or ""

    @property
    def target(self) -> float:
        """The float64 nearest to `targetValue`."""
        return quantity_float(self.target_value)

    @property
    def exact_target(self) -> Fraction:
        """`targetValue` as it was written."""
        return parse_quantity(self.target_value)


class PodSource(ResourcePart):
    """A metric on a page that the target's pods serve."""

    name: str | None = None
    """Name of the Prometheus family; absent means the metric's own name."""
    uri: str = "/metrics"
    """Path of the page."""
    port: Port = 8100
    """Port of the page."""
    label_selector: LabelSelector | None = None


class PrometheusSource(ResourcePart):
    """A metric that one query to a Prometheus server answers, as a total over the target."""

    server_url: str = Field(alias="serverURL", min_length=1)
    """Address of the server, http:// or https://."""
    query: str = Field(min_length=1)
    """PromQL whose result is one number."""
    auth: dict[str, Any] | None = None
    """Reserved upstream; nothing reads it."""


class MetricSource(ResourcePart):
    """Where one metric is read: exactly one of the two."""

    pod: PodSource | None = None
    prometheus: PrometheusSource | None = None


class MetricEndpoint(ResourcePart):
    """The page of all metrics of a target's pods, before v1.0.0."""

    uri: str = "/metrics"
    """Path of the page."""
    port: Port = 8100
    """Port of the page."""
    label_selector: LabelSelector | None = None
    """From v0.2.0 on, in the place of `additionalMatchLabels`."""
