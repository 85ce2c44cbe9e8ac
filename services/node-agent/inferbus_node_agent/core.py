"""What has to happen to a pod now.

`advance` looks at the plan, at what is known and at the time, never at what happened last: the same
state always asks for the same actions, after an event, a timer or an adoption. Facts come in
through `policy_facts.fold`; an action that was asked for is marked in the state, so that it isn't
asked for twice.
"""

from dataclasses import replace
from typing import NamedTuple

from inferbus_node_agent.actions import Action, Finalise, PreparePod, RunProbe, StartContainer
from inferbus_node_agent.plan import ContainerPlan, PodPlan, Timing
from inferbus_node_agent.policy_probes import active_probes, first_turn, sent
from inferbus_node_agent.policy_status import conditions
from inferbus_node_agent.policy_stopping import continue_stop, request_stop
from inferbus_node_agent.state import PodState, Stage

_ACTIVE = (Stage.STARTING, Stage.RUNNING)


class Step(NamedTuple):
    """The pod after looking at it, what to do, and when to look again."""

    state: PodState
    actions: tuple[Action, ...]
    wake_ms: int | None
    """Virtual time of the next look if no fact comes before; None: only a fact changes anything."""


def advance(plan: PodPlan, state: PodState, now_ms: int, timing: Timing) -> Step:
    """Everything that is due at `now_ms`."""
    state, actions = _progress(plan, state, now_ms, timing)
    state = replace(state, conditions=conditions(plan, state, now_ms))
    return Step(state, tuple(actions), _next_look(state, now_ms))


def _progress(
    plan: PodPlan, state: PodState, now_ms: int, timing: Timing
) -> tuple[PodState, list[Action]]:
    if state.finalising:
        return state, []
    unwanted = plan.deleting or state.orphaned
    if not state.address and not unwanted:
        return _prepare(state, now_ms)
    state = _with_outcome(plan, state)
    if unwanted or state.outcome:
        grace_ms = timing.orphan_grace_ms if state.orphaned else plan.grace_ms
        state, actions = _stop_all(plan, state, now_ms, min(grace_ms, plan.grace_ms))
    else:
        state, actions = _run(plan, state, now_ms)
    if unwanted and not state.preparing and not _active(plan, state):
        return replace(state, finalising=True), [*actions, Finalise()]
    return state, actions


def _active(plan: PodPlan, state: PodState) -> bool:
    return any(state.of(other.name).stage in _ACTIVE for other in plan.every_container)


def _prepare(state: PodState, now_ms: int) -> tuple[PodState, list[Action]]:
    if state.preparing or now_ms < state.prepare_after_ms:
        return state, []
    return replace(state, preparing=True), [PreparePod()]


def _with_outcome(plan: PodPlan, state: PodState) -> PodState:
    """Succeeded or Failed, once nothing can run any more. It is final (core/v1 PodPhase)."""
    if state.outcome or state.stopping_since_ms is not None:
        return state
    broken = [
        container.name
        for container in plan.init_containers
        if (found := state.of(container.name)).stage is Stage.ENDED
        and not (found.ended and found.ended.succeeded)
    ]
    if broken:
        message = f"init container {broken[0]} failed and the pod's restart policy is Never"
        return replace(state, outcome="Failed", reason="InitContainerFailed", message=message)
    containers = [state.of(container.name) for container in plan.containers]
    if not all(container.stage is Stage.ENDED for container in containers):
        return state
    succeeded = all(container.ended and container.ended.succeeded for container in containers)
    return replace(state, outcome="Succeeded" if succeeded else "Failed")


def _run(plan: PodPlan, state: PodState, now_ms: int) -> tuple[PodState, list[Action]]:
    """Init containers one after the other, then all others at once."""
    for container in plan.init_containers:
        if state.of(container.name).stage is not Stage.ENDED:
            return _run_container(container, state, now_ms)
    actions: list[Action] = []
    for container in plan.containers:
        state, more = _run_container(container, state, now_ms)
        actions += more
    return state, actions


def _run_container(
    plan: ContainerPlan, state: PodState, now_ms: int
) -> tuple[PodState, list[Action]]:
    container = state.of(plan.name)
    if container.stage is Stage.WAITING and now_ms >= container.not_before_ms:
        starting = replace(container, stage=Stage.STARTING, waiting_reason="", waiting_message="")
        action = StartContainer(plan.name, container.attempt + 1)
        return state.with_container(plan.name, starting), [action]
    if container.stage is not Stage.RUNNING:
        return state, []
    if container.stopping is not None:
        after, stop = continue_stop(plan, container, now_ms)
        return state.with_container(plan.name, after), list(stop)
    return _probe(plan, _without_pending_probes(plan, state), now_ms)


def _without_pending_probes(plan: ContainerPlan, state: PodState) -> PodState:
    """A container has started, or is ready, where no probe says otherwise."""
    container = state.of(plan.name)
    if not container.started and not active_probes(plan, container):
        container = replace(container, started=True)
    if container.started and not container.ready:
        kinds = {probe.kind for probe in active_probes(plan, container)}
        if "readiness" not in kinds:
            container = replace(container, ready=True)
    return state.with_container(plan.name, container)


def _probe(plan: ContainerPlan, state: PodState, now_ms: int) -> tuple[PodState, list[Action]]:
    container = state.of(plan.name)
    actions: list[Action] = []
    for probe in active_probes(plan, container):
        known = state.probes.get(plan.name, {}).get(probe.kind)
        turn = known or first_turn(probe, container.started_ms, now_ms)
        if not turn.in_flight and now_ms >= turn.next_ms:
            turn = sent(probe, turn, now_ms)
            actions.append(RunProbe(plan.name, container.attempt, probe))
        state = state.with_probe(plan.name, probe.kind, turn)
    return state, actions


def _stop_all(
    plan: PodPlan, state: PodState, now_ms: int, grace_ms: int
) -> tuple[PodState, list[Action]]:
    if state.stopping_since_ms is None:
        state = replace(state, stopping_since_ms=now_ms)
    assert state.stopping_since_ms is not None
    deadline_ms = state.stopping_since_ms + grace_ms
    actions: list[Action] = []
    for container in plan.every_container:
        known = state.of(container.name)
        if known.stage is Stage.RUNNING:
            known, stop = continue_stop(container, request_stop(known, deadline_ms), now_ms)
            actions += stop
            state = state.with_container(container.name, known)
    return state.without_probes(), actions


def _next_look(state: PodState, now_ms: int) -> int | None:
    """The earliest time at which anything that waits for its time is due."""
    times: list[int] = []
    stopping = state.stopping_since_ms is not None
    if not state.address and not state.preparing and not state.finalising:
        times.append(state.prepare_after_ms)
    for name, container in state.containers.items():
        if container.stage is Stage.WAITING and not stopping:
            times.append(container.not_before_ms)
        elif container.stage is Stage.RUNNING and container.stopping is not None:
            times.append(container.stopping.deadline_ms)
        elif container.stage is Stage.RUNNING:
            probes = state.probes.get(name, {}).values()
            times += [probe.next_ms for probe in probes if not probe.in_flight]
    future = [time for time in times if time > now_ms]
    return min(future, default=None)
