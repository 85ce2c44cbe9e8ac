"""What the agent needs from the outside, and what it promises in return."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from inferbus_node_agent.plan import HookTarget, ProbeTarget
from inferbus_node_agent.policy_adoption import Observed
from inferbus_node_agent.policy_containers import ExecutedProgram, ForkedProgram
from inferbus_node_agent.policy_environment import SourceName
from inferbus_node_agent.state import Ended

Document = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class PodSnapshot:
    """All pod objects of this node, at one moment. Pods that run and aren't in it are killed, so
    it must be complete or not be given at all."""

    documents: Sequence[Document]


@dataclass(frozen=True, slots=True)
class PodApplied:
    """A pod object was created or changed."""

    document: Document


@dataclass(frozen=True, slots=True)
class PodRemoved:
    """A pod object is gone."""

    uid: str


PodNews = PodSnapshot | PodApplied | PodRemoved


class PodSource(Protocol):
    """Where pods come from."""

    def watch(self) -> AsyncIterator[PodNews]:
        """A snapshot, then changes, for ever; another snapshot whenever changes may have been
        missed.

        While the source can't be reached it is silent: the pods stay as they are.
        """
        ...


class StatusSink(Protocol):
    """Where the agent tells what became of pods.

    Both raise `ProblemsError`; NOT_FOUND and CONFLICT (the object is gone, or another pod has its
    name) end the matter, with anything else the agent tries again.
    """

    async def report(self, key: str, uid: str, status: Document) -> None:
        """Replace the status of the pod object with this key and uid."""
        ...

    async def finalise(self, key: str, uid: str) -> None:
        """The pod has stopped: remove its object. Accepted too when it is gone already."""
        ...


class ConfigSource(Protocol):
    """Where ConfigMaps and Secrets come from."""

    async def get(self, namespace: str, name: SourceName) -> Document | None:
        """The object; None when there is none. Raises `ProblemsError` when that can't be told."""
        ...


class ModelGate(Protocol):
    """Where the agent learns that a model is on the node."""

    async def wait(self, pod_key: str, source: str, destination: str) -> None:
        """Return once the artifact is complete; raise `ProblemsError` when its download failed."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Outside:
    """The adapters to everything but this machine."""

    source: PodSource
    sink: StatusSink
    configs: ConfigSource
    models: ModelGate


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt to run one container of one pod."""

    uid: str
    container: str
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StartOrder:
    """A container to start."""

    attempt: Attempt
    program: ForkedProgram | ExecutedProgram
    environment: Mapping[str, str]
    directory: str
    """Working directory; empty: the pod's folder."""
    title: str


class ContainerRuntime(Protocol):
    """What runs containers."""

    async def connect(self, on_end: "OnEnd", on_lost: Callable[[], None]) -> None:
        """Be ready to run containers, however long that takes.

        `on_end` is told of every end, `on_lost` once when `connect` has to be called again. Raises
        `ProblemsError` when that will never work.
        """
        ...

    def close(self) -> None:
        """Let go; every container lives on."""
        ...

    async def start(self, order: StartOrder) -> Observed:
        """Start a container.

        Raises `ProblemsError`: ALREADY_RUNNING, ALREADY_EXISTS (somebody else started it: observe),
        NOT_RUNNING (nobody to ask: observe after the reconnect), PROCESS_FAILED (it can't start).
        """
        ...

    async def observe(self, uid: str, container: str) -> Observed | None:
        """The last attempt that left a trace, taken under watch if it runs."""
        ...

    def terminate(self, attempt: Attempt) -> None:
        """SIGTERM to its process, if it runs."""
        ...

    def kill(self, attempt: Attempt) -> None:
        """SIGKILL to its process group, if it runs."""
        ...

    def kill_last(self, uid: str, container: str) -> None:
        """SIGKILL to the process group of whichever attempt was begun last, if it runs."""
        ...

    def process_id(self, attempt: Attempt) -> int | None:
        """The pid of its process, if it runs."""
        ...


OnEnd = Callable[[Attempt, Ended], None]


class Prober(Protocol):
    """What asks containers how they are."""

    async def probe(
        self, target: ProbeTarget, address: str, process_id: int | None, timeout_seconds: float
    ) -> str:
        """Why the probe failed; empty when it succeeded. Never raises, never takes longer."""
        ...

    async def run_hook(self, target: HookTarget, address: str, process_id: int | None) -> str:
        """Run a hook to its end, however long it takes; why it failed, or empty."""
        ...
