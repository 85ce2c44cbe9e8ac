"""What the core knows of a pod: which containers, how they are probed and how they are stopped.

`policy_plan` makes it from a pod; what differs between simulated and real containers is decided
there, so that the core has one set of rules for both. Times are milliseconds of virtual time unless
a name says `real`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from inferbus_node_agent.pods import RestartPolicy


class ProbeKind(StrEnum):
    """The three probes of a container."""

    STARTUP = "startup"
    READINESS = "readiness"
    LIVENESS = "liveness"


@dataclass(frozen=True, slots=True)
class HttpTarget:
    """A GET request; 200 to 399 is success."""

    host: str
    """Empty: the pod's address."""
    port: int
    path: str = "/"
    tls: bool = False
    """Without verifying the certificate, as kubelet does."""
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class TcpTarget:
    """A connection that is accepted is success."""

    host: str
    """Empty: the pod's address."""
    port: int


@dataclass(frozen=True, slots=True)
class ExecTarget:
    """A command beside the container's process; exit code 0 is success."""

    command: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DrainTarget:
    """Wait until the gauges of an engine's metrics page are all zero, or nobody answers."""

    port: int
    gauges: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PauseTarget:
    """Wait."""

    duration_ms: int


ProbeTarget = HttpTarget | TcpTarget | ExecTarget
HookTarget = HttpTarget | TcpTarget | ExecTarget | DrainTarget | PauseTarget


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbePlan:
    """One probe with its schedule."""

    kind: ProbeKind
    target: ProbeTarget
    initial_delay_ms: int = 0
    period_ms: int = 10_000
    timeout_real_ms: int = 1_000
    """Real time: an answer doesn't come faster because virtual time does."""
    success_threshold: int = 1
    failure_threshold: int = 3
    grace_ms: int | None = None
    """Grace of the kill that a failure causes; None: the pod's."""
    quick_after_ms: int | None = None
    """From when, after the start, it is tried often until it succeeds once; None: never. Failures
    of such early tries don't count (see `policy_probes`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerPlan:
    """One container."""

    name: str
    image: str = ""
    probes: Mapping[ProbeKind, ProbePlan] = field(default_factory=dict)
    pre_stop: HookTarget | None = None
    notes: tuple[str, ...] = ()
    """What of the manifest is not done for this container, for the pod's conditions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodPlan:
    """One pod."""

    containers: tuple[ContainerPlan, ...]
    init_containers: tuple[ContainerPlan, ...] = ()
    restart_policy: RestartPolicy = RestartPolicy.ALWAYS
    grace_ms: int = 30_000
    """Between the request to stop and SIGKILL."""
    deleting: bool = False

    @property
    def every_container(self) -> tuple[ContainerPlan, ...]:
        """Init containers first, in the order they run."""
        return (*self.init_containers, *self.containers)


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """The agent's own times, milliseconds of virtual time.

    The defaults hold at clock rate 1; those that stand for work in real time grow with the rate.
    """

    backoff_first_ms: int = 10_000
    """Before the second restart; doubles with each further one (kubelet's figures)."""
    backoff_most_ms: int = 300_000
    quick_first_ms: int = 100
    quick_most_ms: int = 250
    quick_window_ms: int = 60_000
    """A container that isn't ready after this long is probed at its manifest's period only."""
    retry_ms: int = 2_000
    """After a start that failed for a reason that may pass, such as a missing ConfigMap."""
    orphan_grace_ms: int = 2_000
    """Grace of a pod whose object is gone."""
