"""What the shell tells the core: things that have happened, each with the time it happened.

Facts about an attempt that isn't the current one any more are old news and change nothing, so that
they may arrive late, twice, or after an adoption. Times are virtual milliseconds.
"""

from dataclasses import dataclass

from inferbus_node_agent.plan import ProbeKind
from inferbus_node_agent.state import Ended


@dataclass(frozen=True, slots=True)
class PodPrepared:
    """The pod has a folder and an address."""

    address: str


@dataclass(frozen=True, slots=True)
class PrepareFailed:
    """It couldn't be given them; it is tried again."""

    at_ms: int
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class ContainerStarted:
    """A process runs."""

    container: str
    attempt: int
    at_ms: int
    process_id: str


@dataclass(frozen=True, slots=True)
class StartRefused:
    """No attempt was made, for a reason that may pass."""

    container: str
    attempt: int
    at_ms: int
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class ContainerEnded:
    """An attempt is over, or could not begin."""

    container: str
    ended: Ended


@dataclass(frozen=True, slots=True)
class ContainerLost:
    """A start was requested and left no trace: the request went down with its receiver."""

    container: str
    attempt: int


@dataclass(frozen=True, slots=True)
class ProbeAnswered:
    """One try of a probe is over."""

    container: str
    attempt: int
    kind: ProbeKind
    at_ms: int
    ok: bool
    message: str = ""


@dataclass(frozen=True, slots=True)
class PreStopFinished:
    """The hook is over, however it ended."""

    container: str
    attempt: int


@dataclass(frozen=True, slots=True)
class TermSent:
    """The attempt was sent SIGTERM."""

    container: str
    attempt: int


@dataclass(frozen=True, slots=True)
class PodOrphaned:
    """The pod's object is gone without having been marked for deletion."""


Fact = (
    PodPrepared
    | PrepareFailed
    | ContainerStarted
    | StartRefused
    | ContainerEnded
    | ContainerLost
    | ProbeAnswered
    | PreStopFinished
    | TermSent
    | PodOrphaned
)
