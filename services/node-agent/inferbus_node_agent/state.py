"""What the agent knows about a running pod: the state that the core folds facts into.

Invariant: `attempt` of a container never goes down. Everything but `probes` is stored in the pod's
run folder, so that a new agent goes on where the old one was killed. Times are virtual
milliseconds.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Self

from inferbus_node_agent.plan import ProbeKind

NEVER_STARTED = -1


class Stage(StrEnum):
    """Where a container is in its life."""

    WAITING = "waiting"
    """To be started, at once or later."""
    STARTING = "starting"
    """Attempt `attempt + 1` was requested."""
    RUNNING = "running"
    ENDED = "ended"
    """It ran and won't run again."""


class StopStep(StrEnum):
    """How far stopping a container is."""

    REQUESTED = "requested"
    PRE_STOP = "pre-stop"
    PRE_STOP_DONE = "pre-stop-done"
    TERMINATE = "terminate"
    """SIGTERM is on its way."""
    TERMINATED = "terminated"
    """SIGTERM was sent."""
    KILL = "kill"


@dataclass(frozen=True, slots=True)
class Ended:
    """How one attempt to run a container ended; code and signal absent: nobody saw it."""

    attempt: int
    started_ms: int
    finished_ms: int
    code: int | None = None
    signal: int | None = None
    reason: str = ""
    """Why it could not start; empty when it ran."""
    message: str = ""

    @property
    def succeeded(self) -> bool:
        """Whether it ended by itself with code 0."""
        return self.code == 0


@dataclass(frozen=True, slots=True)
class Stopping:
    """A stop that is under way."""

    step: StopStep
    deadline_ms: int
    """When the next step follows."""
    wanted_by_ms: int
    """The end of the grace period that was asked for; a hook may have moved the deadline."""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class ContainerState:
    """One container."""

    stage: Stage = Stage.WAITING
    attempt: int = NEVER_STARTED
    """Number of the last attempt that is known to have begun, from 0."""
    process_id: str = ""
    started_ms: int = 0
    ended: Ended | None = None
    """The last attempt that ended."""
    not_before_ms: int = 0
    """When a waiting container may be started."""
    failures: int = 0
    """Restarts since it last ran for long, which decide the back-off."""
    waiting_reason: str = ""
    waiting_message: str = ""
    started: bool = False
    """Running and past its startup probe."""
    ready: bool = False
    stopping: Stopping | None = None

    @property
    def restarts(self) -> int:
        """How often it was started again."""
        return max(self.attempt, 0)


@dataclass(frozen=True, slots=True)
class ProbeState:
    """One probe of the running attempt."""

    next_ms: int
    """When it is tried next."""
    regular_ms: int
    """When the manifest's own schedule has its next turn; tries before that are quick ones."""
    successes: int = 0
    failures: int = 0
    """In a row, on the manifest's schedule."""
    in_flight: bool = False
    counts: bool = True
    """Whether a failure of the try in flight counts."""
    message: str = ""
    """What the last failure said."""


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition of the pod's status."""

    type: str
    holds: bool
    since_ms: int
    reason: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodState:
    """One pod."""

    created_ms: int
    address: str = ""
    """Empty until the pod's folder is prepared."""
    preparing: bool = False
    prepare_after_ms: int = 0
    containers: Mapping[str, ContainerState] = field(default_factory=dict)
    conditions: tuple[Condition, ...] = ()
    stopping_since_ms: int | None = None
    """When all containers were told to stop; None while the pod is wanted."""
    outcome: str = ""
    """`Succeeded` or `Failed` once that is final."""
    reason: str = ""
    """Why the pod can't go on, where that isn't a container's doing."""
    message: str = ""
    orphaned: bool = False
    """Its object is gone: nobody may be told how it ends."""
    finalising: bool = False
    """All is stopped and the agent lets go of it."""
    probes: Mapping[str, Mapping[ProbeKind, ProbeState]] = field(default_factory=dict)

    def of(self, name: str) -> ContainerState:
        """The state of a container; that of a new one when it was never heard of."""
        return self.containers.get(name, _NEW)

    def with_container(self, name: str, container: ContainerState) -> Self:
        """The same with another state of one container."""
        return replace(self, containers={**self.containers, name: container})

    def with_probe(self, name: str, kind: ProbeKind, probe: ProbeState) -> Self:
        """The same with another state of one probe."""
        probes = {**self.probes.get(name, {}), kind: probe}
        return replace(self, probes={**self.probes, name: probes})

    def without_probes(self, name: str = "") -> Self:
        """The same with the probes of a container, or of all, forgotten."""
        left = {other: probes for other, probes in self.probes.items() if name and other != name}
        return replace(self, probes=left)


_NEW = ContainerState()
