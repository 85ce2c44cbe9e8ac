"""What is to be sampled, as plain data: the outcome of reading the policies.

Invariant: a plan is complete by itself. Together with the facts about the pods it says what to
read, from where, and under which key the sample goes out.
"""

from dataclasses import dataclass
from typing import NamedTuple

from inferbus_contracts.events.metrics import MetricKind
from inferbus_contracts.keys import ObjectKey
from inferbus_metrics_collector.policy_selection import Selector


class Page(NamedTuple):
    """A metrics page that every pod of a target serves."""

    port: int
    """`ENGINE_PORT` where each pod's engine has its own."""
    path: str
    """Rooted, ready to stand in a request."""

    def __str__(self) -> str:
        port = "its engine's port" if self.port == ENGINE_PORT else f"port {self.port}"
        return f"{port}{self.path}"


ENGINE_PORT = 0
"""Stands for the port that a pod's engine answers on."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PodMetric:
    """A metric that pods show on a page."""

    name: str
    """The policy's name of it."""
    families: tuple[str, ...]
    """The Prometheus families that can answer, the best first."""
    page: Page
    selector: Selector = Selector()  # noqa: RUF009 - frozen
    is_optional: bool = False
    """Whether it is all right that no pod has it: nobody asked for it by name."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PrometheusMetric:
    """A metric that a query to a Prometheus server answers."""

    name: str
    server_url: str
    query: str
    kind: MetricKind = MetricKind.EXTERNAL_TOTAL
    """What the value is of: the whole target, one replica, or its share in use."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TargetPlan:
    """One target and its metrics."""

    key: ObjectKey
    metrics: tuple[PodMetric | PrometheusMetric, ...] = ()
    beside: tuple[PodMetric, ...] = ()
    """Read from the same pages, though no policy asks for it; what lacks of it lacks nothing."""

    @property
    def pod_metrics(self) -> tuple[PodMetric, ...]:
        """Those that pods show."""
        return tuple(item for item in self.metrics if isinstance(item, PodMetric))

    @property
    def prometheus_metrics(self) -> tuple[PrometheusMetric, ...]:
        """Those that a query answers."""
        return tuple(item for item in self.metrics if isinstance(item, PrometheusMetric))


@dataclass(frozen=True, kw_only=True, slots=True)
class SamplePlan:
    """One sample per round: a target's, or that of all that are decided about together."""

    key: ObjectKey
    """The target, or of several the policy (binding): what the sample is keyed by."""
    policy: ObjectKey
    """The policy, or the binding that applies it."""
    identity: str
    """Uids and generations of the objects that the plan follows from."""
    targets: tuple[TargetPlan, ...]
