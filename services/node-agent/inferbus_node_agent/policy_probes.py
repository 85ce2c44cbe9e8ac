"""The schedule of a probe and what its answers mean.

A container's startup probe runs alone until it succeeds; then readiness and liveness run for the
rest of the attempt (core/v1 Probe). A quick probe is tried often, from early on, until its first
success: it notices readiness at once where a probe costs nothing, and only tries that the
manifest's own schedule asks for count as failures, so that no container is judged more harshly for
it.
"""

from dataclasses import replace
from enum import Enum, auto

from inferbus_node_agent.plan import ContainerPlan, ProbeKind, ProbePlan, Timing
from inferbus_node_agent.state import ContainerState, ProbeState


class Verdict(Enum):
    """What an answer changes."""

    NONE = auto()
    PASSED = auto()
    FAILED = auto()


def active_probes(plan: ContainerPlan, container: ContainerState) -> tuple[ProbePlan, ...]:
    """The probes that run now, for a running container that isn't being stopped."""
    if not container.started:
        startup = plan.probes.get(ProbeKind.STARTUP)
        return (startup,) if startup else ()
    kinds = (ProbeKind.READINESS, ProbeKind.LIVENESS)
    return tuple(plan.probes[kind] for kind in kinds if kind in plan.probes)


def first_turn(probe: ProbePlan, started_ms: int, now_ms: int) -> ProbeState:
    """A probe that begins now."""
    regular_ms = max(started_ms + probe.initial_delay_ms, now_ms)
    if probe.quick_after_ms is None:
        return ProbeState(next_ms=regular_ms, regular_ms=regular_ms)
    quick_ms = max(started_ms + probe.quick_after_ms, now_ms)
    return ProbeState(next_ms=min(regular_ms, quick_ms), regular_ms=regular_ms)


def sent(probe: ProbePlan, state: ProbeState, now_ms: int) -> ProbeState:
    """The probe while a try is in flight."""
    counts = now_ms >= state.regular_ms
    regular_ms = state.regular_ms
    if counts:
        missed = (now_ms - regular_ms) // probe.period_ms
        regular_ms += (missed + 1) * probe.period_ms
    return replace(state, in_flight=True, counts=counts, regular_ms=regular_ms)


def answered(
    probe: ProbePlan, state: ProbeState, *, ok: bool, message: str
) -> tuple[ProbeState, Verdict]:
    """The probe after an answer, and what that means; `next_ms` is left to `next_turn`."""
    if ok:
        after = replace(state, in_flight=False, successes=state.successes + 1, failures=0)
        passed = after.successes >= probe.success_threshold
        return replace(after, message=""), Verdict.PASSED if passed else Verdict.NONE
    failures = state.failures + 1 if state.counts else state.failures
    after = replace(state, in_flight=False, successes=0, failures=failures, message=message)
    failed = state.counts and failures >= probe.failure_threshold
    return after, Verdict.FAILED if failed else Verdict.NONE


def next_turn(
    probe: ProbePlan, state: ProbeState, container: ContainerState, now_ms: int, timing: Timing
) -> ProbeState:
    """The probe with its next turn decided, after an answer."""
    passed = container.ready if probe.kind is ProbeKind.READINESS else container.started
    running_ms = now_ms - container.started_ms
    quick = probe.quick_after_ms is not None and not passed and running_ms < timing.quick_window_ms
    # The elder the container, the less a little more delay matters: a twentieth of its age.
    pause_ms = min(max(running_ms // 20, timing.quick_first_ms), timing.quick_most_ms)
    next_ms = min(state.regular_ms, now_ms + pause_ms) if quick else state.regular_ms
    return replace(state, next_ms=next_ms)
