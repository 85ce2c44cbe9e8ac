"""What the core asks for; the shell carries it out and answers with facts."""

from dataclasses import dataclass

from inferbus_node_agent.plan import HookTarget, ProbeKind, ProbePlan


@dataclass(frozen=True, slots=True)
class PreparePod:
    """Give the pod an address and a folder. Answered by `PodPrepared` or `PrepareFailed`."""


@dataclass(frozen=True, slots=True)
class StartContainer:
    """Start a container. Answered by `ContainerStarted`, `StartRefused` or `ContainerEnded`."""

    container: str
    attempt: int


@dataclass(frozen=True, slots=True)
class RunProbe:
    """Probe once. Answered by `ProbeAnswered`."""

    container: str
    attempt: int
    probe: ProbePlan

    @property
    def kind(self) -> ProbeKind:
        """Which of the three."""
        return self.probe.kind


@dataclass(frozen=True, slots=True)
class RunPreStop:
    """Run the hook before SIGTERM. Answered by `PreStopFinished`."""

    container: str
    attempt: int
    hook: HookTarget


@dataclass(frozen=True, slots=True)
class Terminate:
    """SIGTERM to the container's process."""

    container: str
    attempt: int


@dataclass(frozen=True, slots=True)
class Kill:
    """SIGKILL to the container's process and all it started."""

    container: str
    attempt: int


@dataclass(frozen=True, slots=True)
class Finalise:
    """Remove the pod's folder, give its address back and tell that it is gone."""


Action = PreparePod | StartContainer | RunProbe | RunPreStop | Terminate | Kill | Finalise
