"""From what is found on the machine to facts.

An agent that starts, or that lost its fork server, compares what it knows of each container with
what lies in the run folder. Folding the facts brings both together whatever was killed in between.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from inferbus_node_agent.facts import ContainerEnded, ContainerLost, ContainerStarted, Fact
from inferbus_node_agent.state import ContainerState, Ended, PodState, Stage, StopStep


@dataclass(frozen=True, slots=True)
class Observed:
    """The last attempt of a container that left a trace. Times are virtual milliseconds."""

    attempt: int
    started_ms: int
    process_id: str
    finished_ms: int | None = None
    """None while it runs."""
    code: int | None = None
    signal: int | None = None


def resume(state: PodState) -> PodState:
    """A stored state as a new agent takes it up: nothing the old one had under way still is."""
    containers: Mapping[str, ContainerState] = {
        name: _resumed(container) for name, container in state.containers.items()
    }
    return replace(state, containers=containers, probes={}, preparing=False, finalising=False)


_AGAIN: Mapping[StopStep, StopStep] = {
    StopStep.PRE_STOP: StopStep.REQUESTED,
    StopStep.TERMINATE: StopStep.PRE_STOP_DONE,
}
"""From where a stop goes on whose step was begun and isn't known to be done."""


def _resumed(container: ContainerState) -> ContainerState:
    stopping = container.stopping
    if stopping is None or stopping.step not in _AGAIN:
        return container
    return replace(container, stopping=replace(stopping, step=_AGAIN[stopping.step]))


def adoption_facts(
    name: str, container: ContainerState, observed: Observed | None, now_ms: int
) -> tuple[Fact, ...]:
    """What has happened to a container that its state doesn't say."""
    if container.stage is Stage.STARTING and _nothing_after(container, observed):
        return (ContainerLost(name, container.attempt + 1),)
    running = container.stage is Stage.RUNNING
    if observed is None or observed.attempt < container.attempt:
        return (_vanished(name, container, now_ms),) if running else ()
    newer = observed.attempt > container.attempt
    if observed.finished_ms is None:
        started = ContainerStarted(name, observed.attempt, observed.started_ms, observed.process_id)
        return (started,) if newer else ()
    if not newer and not running:
        return ()
    ended = Ended(
        observed.attempt,
        observed.started_ms,
        observed.finished_ms,
        observed.code,
        observed.signal,
    )
    return (ContainerEnded(name, ended),)


def _nothing_after(container: ContainerState, observed: Observed | None) -> bool:
    return observed is None or observed.attempt <= container.attempt


def _vanished(name: str, container: ContainerState, now_ms: int) -> ContainerEnded:
    """Its files are gone, so nobody can tell whether it runs; its lock still keeps it single."""
    return ContainerEnded(name, Ended(container.attempt, container.started_ms, now_ms))
