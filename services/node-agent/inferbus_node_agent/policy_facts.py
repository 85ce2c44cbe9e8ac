"""What each fact changes in what is known of a pod.

Folding a fact twice, or one about an attempt that is over, changes nothing: facts come from
processes that may have been asked by an agent that is dead.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from inferbus_node_agent import facts
from inferbus_node_agent.facts import Fact
from inferbus_node_agent.plan import ContainerPlan, PodPlan, ProbeKind, ProbePlan, Timing
from inferbus_node_agent.policy_probes import Verdict, answered, next_turn
from inferbus_node_agent.policy_restarts import after_end, runs_again
from inferbus_node_agent.policy_stopping import request_stop
from inferbus_node_agent.state import ContainerState, PodState, Stage, StopStep


def fold(plan: PodPlan, state: PodState, fact: Fact, timing: Timing) -> PodState:
    """The pod after a fact."""
    return _FOLDS[type(fact)](plan, state, fact, timing)


def _prepared(_: PodPlan, state: PodState, fact: facts.PodPrepared, __: Timing) -> PodState:
    return replace(state, address=fact.address, preparing=False, reason="", message="")


def _prepare_failed(
    _: PodPlan, state: PodState, fact: facts.PrepareFailed, timing: Timing
) -> PodState:
    return replace(
        state,
        preparing=False,
        prepare_after_ms=fact.at_ms + timing.retry_ms,
        reason=fact.reason,
        message=fact.message,
    )


def _started(_: PodPlan, state: PodState, fact: facts.ContainerStarted, __: Timing) -> PodState:
    container = state.of(fact.container)
    if fact.attempt <= container.attempt:
        return state
    running = ContainerState(
        stage=Stage.RUNNING,
        attempt=fact.attempt,
        process_id=fact.process_id,
        started_ms=fact.at_ms,
        ended=container.ended,
        failures=container.failures,
    )
    return state.without_probes(fact.container).with_container(fact.container, running)


def _refused(_: PodPlan, state: PodState, fact: facts.StartRefused, timing: Timing) -> PodState:
    container = state.of(fact.container)
    if container.stage is not Stage.STARTING or fact.attempt != container.attempt + 1:
        return state
    return state.with_container(
        fact.container,
        replace(
            container,
            stage=Stage.WAITING,
            not_before_ms=fact.at_ms + timing.retry_ms,
            waiting_reason=fact.reason,
            waiting_message=fact.message,
        ),
    )


def _lost(_: PodPlan, state: PodState, fact: facts.ContainerLost, __: Timing) -> PodState:
    container = state.of(fact.container)
    if container.stage is not Stage.STARTING or fact.attempt != container.attempt + 1:
        return state
    return state.with_container(fact.container, replace(container, stage=Stage.WAITING))


def _ended(plan: PodPlan, state: PodState, fact: facts.ContainerEnded, timing: Timing) -> PodState:
    container, ended = state.of(fact.container), fact.ended
    current = ended.attempt == container.attempt and container.stage is Stage.RUNNING
    if not current and ended.attempt <= container.attempt:
        return state
    init = any(other.name == fact.container for other in plan.init_containers)
    wanted = state.stopping_since_ms is None and not state.outcome
    restart = wanted and runs_again(plan.restart_policy, ended, init=init)
    if container.stopping is not None and container.stopping.reason and not ended.message:
        ended = replace(ended, message=container.stopping.reason)
    after = after_end(container, ended, restart=restart, timing=timing)
    return state.without_probes(fact.container).with_container(fact.container, after)


def _probed(plan: PodPlan, state: PodState, fact: facts.ProbeAnswered, timing: Timing) -> PodState:
    container = state.of(fact.container)
    probe_state = state.probes.get(fact.container, {}).get(fact.kind)
    probe = _probe(plan, fact.container, fact.kind)
    if container.stage is not Stage.RUNNING or fact.attempt != container.attempt:
        return state
    if probe is None or probe_state is None or not probe_state.in_flight:
        return state
    probe_state, verdict = answered(probe, probe_state, ok=fact.ok, message=fact.message)
    container = _judged(plan, container, probe, verdict, fact)
    probe_state = next_turn(probe, probe_state, container, fact.at_ms, timing)
    return state.with_container(fact.container, container).with_probe(
        fact.container, fact.kind, probe_state
    )


def _judged(
    plan: PodPlan,
    container: ContainerState,
    probe: ProbePlan,
    verdict: Verdict,
    fact: facts.ProbeAnswered,
) -> ContainerState:
    if verdict is Verdict.NONE:
        return container
    passed = verdict is Verdict.PASSED
    if probe.kind is ProbeKind.READINESS:
        return replace(container, ready=passed)
    if passed:
        return replace(container, started=True)
    grace_ms = plan.grace_ms if probe.grace_ms is None else probe.grace_ms
    reason = f"the {probe.kind.value} probe failed: {fact.message}"
    return replace(request_stop(container, fact.at_ms + grace_ms, reason), ready=False)


def _probe(plan: PodPlan, name: str, kind: ProbeKind) -> ProbePlan | None:
    container: ContainerPlan | None = next(
        (other for other in plan.every_container if other.name == name), None
    )
    return container.probes.get(kind) if container else None


def _pre_stop_finished(
    _: PodPlan, state: PodState, fact: facts.PreStopFinished, __: Timing
) -> PodState:
    return _stepped(state, fact, StopStep.PRE_STOP, StopStep.PRE_STOP_DONE)


def _term_sent(_: PodPlan, state: PodState, fact: facts.TermSent, __: Timing) -> PodState:
    return _stepped(state, fact, StopStep.TERMINATE, StopStep.TERMINATED)


def _stepped(
    state: PodState,
    fact: facts.PreStopFinished | facts.TermSent,
    before: StopStep,
    after: StopStep,
) -> PodState:
    """The stop of the current attempt one step on, if it is where the fact found it."""
    container = state.of(fact.container)
    stopping = container.stopping
    if stopping is None or stopping.step is not before or fact.attempt != container.attempt:
        return state
    stepped = replace(container, stopping=replace(stopping, step=after))
    return state.with_container(fact.container, stepped)


def _orphaned(_: PodPlan, state: PodState, __: facts.PodOrphaned, ___: Timing) -> PodState:
    return replace(state, orphaned=True)


_FOLDS: dict[type, Callable[[PodPlan, PodState, Any, Timing], PodState]] = {
    facts.PodPrepared: _prepared,
    facts.PrepareFailed: _prepare_failed,
    facts.ContainerStarted: _started,
    facts.StartRefused: _refused,
    facts.ContainerLost: _lost,
    facts.ContainerEnded: _ended,
    facts.ProbeAnswered: _probed,
    facts.PreStopFinished: _pre_stop_finished,
    facts.TermSent: _term_sent,
    facts.PodOrphaned: _orphaned,
}
