"""How a container is stopped: preStop hook, SIGTERM, SIGKILL.

All of it happens within one grace period, which begins with the hook; a process gets at least two
seconds between a hook that used it up and SIGKILL (kubelet's rules).
"""

from dataclasses import replace

from inferbus_node_agent.actions import Action, Kill, RunPreStop, Terminate
from inferbus_node_agent.plan import ContainerPlan
from inferbus_node_agent.state import ContainerState, Stopping, StopStep

LEAST_GRACE_MS = 2_000
KILL_AGAIN_MS = 5_000

Change = tuple[ContainerState, tuple[Action, ...]]


def request_stop(container: ContainerState, deadline_ms: int, reason: str = "") -> ContainerState:
    """The container with a stop asked for; an earlier deadline shortens one that is under way."""
    stopping = container.stopping
    if stopping is None:
        requested = Stopping(StopStep.REQUESTED, deadline_ms, deadline_ms, reason)
        return replace(container, stopping=requested)
    if stopping.step is StopStep.KILL or stopping.wanted_by_ms <= deadline_ms:
        return container
    shorter = replace(
        stopping,
        deadline_ms=min(stopping.deadline_ms, deadline_ms),
        wanted_by_ms=deadline_ms,
    )
    return replace(container, stopping=shorter)


def continue_stop(plan: ContainerPlan, container: ContainerState, now_ms: int) -> Change:
    """The container with every step of its stop taken that is due, and what has to be done."""
    stopping = container.stopping
    if stopping is None:
        return container, ()
    overdue = now_ms >= stopping.deadline_ms
    match stopping.step:
        case StopStep.REQUESTED if overdue:
            return _kill(plan, container, stopping, now_ms)
        case StopStep.REQUESTED if plan.pre_stop is not None:
            running = replace(stopping, step=StopStep.PRE_STOP)
            action = RunPreStop(plan.name, container.attempt, plan.pre_stop)
            return replace(container, stopping=running), (action,)
        case StopStep.REQUESTED:
            return _terminate(plan, container, stopping, stopping.deadline_ms)
        case StopStep.PRE_STOP if not overdue:
            return container, ()
        case StopStep.PRE_STOP | StopStep.PRE_STOP_DONE:
            deadline_ms = max(stopping.deadline_ms, now_ms + LEAST_GRACE_MS)
            return _terminate(plan, container, stopping, deadline_ms)
        case _ if overdue:
            return _kill(plan, container, stopping, now_ms)
    return container, ()


def _terminate(
    plan: ContainerPlan, container: ContainerState, stopping: Stopping, deadline_ms: int
) -> Change:
    after = replace(stopping, step=StopStep.TERMINATE, deadline_ms=deadline_ms)
    return replace(container, stopping=after), (Terminate(plan.name, container.attempt),)


def _kill(
    plan: ContainerPlan, container: ContainerState, stopping: Stopping, now_ms: int
) -> Change:
    after = replace(stopping, step=StopStep.KILL, deadline_ms=now_ms + KILL_AGAIN_MS)
    return replace(container, stopping=after), (Kill(plan.name, container.attempt),)
