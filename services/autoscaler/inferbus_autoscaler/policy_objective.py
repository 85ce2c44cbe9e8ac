"""Scaling by what users must notice: no metric, no target, no knob.

Offered load and its course come from the routers' counters, the backlog from routers and engines.
What is recommended covers the load at the time when a replica started now would serve, with the
headroom that the objective needs (`policy_headroom`), and works off the backlog. Going down waits
until nothing in a while, no shorter than a start-up takes, asked for more, and until what could be
spared outweighs a change of direction. Invariants: partial or stale data never takes a replica
away; where nothing comes in, the state doesn't change.
"""

import functools
import math
from dataclasses import dataclass, replace

from inferbus_autoscaler.evaluation import Evaluation
from inferbus_autoscaler.events import Demanded, Event, Sampled
from inferbus_autoscaler.facts import Behaviour, Facts, PolicyFacts, StepPolicy
from inferbus_autoscaler.objective_memory import ObjectiveMemory
from inferbus_autoscaler.policy_arrivals import LOOK_MS
from inferbus_autoscaler.policy_default import scope_of, units_of
from inferbus_autoscaler.policy_headroom import headroom
from inferbus_autoscaler.policy_held_window import LONGEST_MS
from inferbus_autoscaler.policy_history import History
from inferbus_autoscaler.policy_limits import Scope, Steps, limit
from inferbus_autoscaler.policy_load import heard, stepped
from inferbus_autoscaler.policy_need import MOST_NEEDED, MetricLoad
from inferbus_autoscaler.policy_served import capacity_per_second
from inferbus_autoscaler.policy_surplus import price
from inferbus_autoscaler.policy_throughput import throughputs_after
from inferbus_autoscaler.state import TargetState
from inferbus_contracts.events.scaling import Limiter, LimiterStep, Mode

DEMAND = "demand"
"""What the load is called in records: requests per second."""

_BACKLOG_SECONDS = 30.0
"""In which a backlog is to be worked off."""
_MOST_GROWTH = 4
"""Times what is ready, on what was merely seen."""
_UNKNOWN_STARTUP_MS = 60_000
"""Until a replica was seen to become ready."""
_SHORTEST_HOLD_MS = 240_000
_HOLD_PERCENT_OF_STARTUP = 150


@dataclass(frozen=True)
class _Want:
    """What the load asks for, before anything limits it."""

    replicas: int
    metric: MetricLoad


def evaluate_objective(
    state: TargetState, policy: PolicyFacts, facts: Facts, event: Event, now_ms: int
) -> tuple[TargetState, Evaluation | None]:
    """Look at what an event changes; None where it is too early to look again."""
    assert policy.objective is not None, "asked for only where a policy has one"
    before = state.objective or ObjectiveMemory(since_ms=now_ms)
    memory = heard(before, policy, facts, event)
    if isinstance(event, Sampled) and not policy.mix and policy.objective.capacity is None:
        learned = throughputs_after(state.throughputs, facts.targets, event)
        state = state if learned is state.throughputs else replace(state, throughputs=learned)
    tokens = _learned_tokens(state, facts)
    capacity = capacity_per_second(policy.objective, memory.sizes, tokens)
    memory = stepped(
        memory,
        policy.objective,
        now_ms,
        ahead_seconds=_ahead_seconds(memory),
        units=_ready_units(policy, facts),
        capacity=capacity,
    )
    if isinstance(event, Demanded) and memory == before:
        return state, None
    sampled_ms = event.taken_at_ms if isinstance(event, Sampled) else None
    fresh = memory.engines.fresh(now_ms, facts.settings.stale_ms, sampled_ms)
    return state, _evaluate(state, memory, policy, facts, capacity, now_ms, fresh=fresh)


def hold_ms(startup_ms: int) -> int:
    """How long a need is remembered before replicas go: never shorter than a start-up."""
    held = (startup_ms or _UNKNOWN_STARTUP_MS) * _HOLD_PERCENT_OF_STARTUP // 100
    return min(max(held, _SHORTEST_HOLD_MS), LONGEST_MS)


def next_look(state: TargetState, policy: PolicyFacts, facts: Facts, now_ms: int) -> int | None:
    """When a target is to be looked at though nothing is heard; None: never.

    A freeze ends, or there is no traffic and time alone makes replicas superfluous.
    """
    memory = state.objective
    if memory is None:
        return None
    if facts.frozen:
        return facts.frozen_until_ms
    if memory.counting_since_ms is not None:
        return None
    scope = scope_of(state, policy, facts)
    if scope.current <= scope.min_replicas:
        return None
    times = [memory.quiet_since_ms + facts.settings.idle_ms]
    held_ms = hold_ms(memory.startup_ms)
    times += [ended_ms + held_ms for ended_ms, _ in state.history.most_recommended.past]
    surplus = memory.surplus
    if surplus.spare:
        lacking = _price(memory, scope) - surplus.accrued
        times.append(surplus.since_ms + max(0, -(-lacking // surplus.spare)))
    return min((at_ms for at_ms in times if at_ms > now_ms), default=None)


def _learned_tokens(state: TargetState, facts: Facts) -> float | None:
    """Output tokens per second that a replica (of a mix: the least of them) was seen to hold."""
    used = {known.target: known.used for known in state.throughputs}
    rates = [used.get(target.identity) for target in facts.targets]
    known = [rate for rate in rates if rate is not None]
    return min(known) if known and len(known) == len(rates) else None


def _ahead_seconds(memory: ObjectiveMemory) -> float:
    """How far ahead a decision made now takes effect."""
    return ((memory.startup_ms or _UNKNOWN_STARTUP_MS) + LOOK_MS) / 1000


def _ready_units(policy: PolicyFacts, facts: Facts) -> float:
    """Ready replicas; of a mix in capacity units."""
    return math.fsum(
        (member.capacity if policy.mix else 1.0) * target.ready
        for member in policy.targets
        if (target := facts.target(member.key)) is not None
    )


def _evaluate(
    state: TargetState,
    memory: ObjectiveMemory,
    policy: PolicyFacts,
    facts: Facts,
    capacity: float | None,
    now_ms: int,
    *,
    fresh: bool,
) -> Evaluation:
    assert policy.objective is not None, "asked for only where a policy has one"
    units = units_of(state, policy, facts)
    scope = units.scope(_behaviour(hold_ms(memory.startup_ms)), 0, frozen=False)
    want = _want(memory, policy, facts, scope, capacity, now_ms)
    supported, detail = _supported(want, facts, scope, fresh=fresh)
    value = scope.bounded(supported)
    history = state.history.started(scope.current, now_ms, policy.most_stamps)
    evidence = value
    if supported != want.replicas:
        evidence = max(scope.bounded(want.replicas), history.recommended or 0)
    history = history.with_recommendation(evidence, now_ms, policy.most_stamps)
    steps: Steps = (
        LimiterStep(name=Limiter.DATA, before=want.replicas, after=supported, detail=detail),
        LimiterStep(
            name=Limiter.BOUNDS,
            before=supported,
            after=value,
            detail=f"{scope.min_replicas} to {scope.max_replicas}",
        ),
        *limit(value, history, scope, now_ms),
    )
    spare = scope.current - steps[-1].after
    doubted = supported != want.replicas and spare <= 0
    surplus = memory.surplus if doubted else memory.surplus.going_on(spare, now_ms)
    if spare > 0:
        worth, asked = surplus.at(now_ms), _price(memory, scope)
        steps = (*steps, _price_step(steps[-1].after, scope.current, worth, asked))
    if facts.frozen:
        frozen = LimiterStep(
            name=Limiter.FREEZE, before=steps[-1].after, after=scope.current, detail="frozen"
        )
        steps = (*steps, frozen)
    desired = steps[-1].after
    if surplus is not memory.surplus:
        memory = replace(memory, surplus=surplus)
    return Evaluation(
        state=_remembering(state, memory, history),
        current=scope.current,
        desired=desired,
        mode=Mode.STABLE,
        limited=desired != value or memory.counting_since_ms is None,
        capacity=units.capacity(desired, scope),
        metrics=(want.metric,),
        steps=steps,
    )


def _remembering(state: TargetState, memory: ObjectiveMemory, history: History) -> TargetState:
    if memory == state.objective and history == state.history:
        return state
    return replace(state, objective=memory, history=history)


def _want(
    memory: ObjectiveMemory,
    policy: PolicyFacts,
    facts: Facts,
    scope: Scope,
    capacity: float | None,
    now_ms: int,
) -> _Want:
    objective = policy.objective
    assert objective is not None, "asked for only where a policy has one"
    backlog = memory.backlog(now_ms)
    asked = memory.arrivals.last_ms is not None
    recently = now_ms - memory.quiet_since_ms < facts.settings.idle_ms
    busy = recently and (asked or scope.current > 0)
    rate = extra = 0.0
    ahead = _ahead_seconds(memory)
    forecast = memory.forecast(now_ms, ahead)
    if memory.trend is not None and forecast is not None:
        rate = forecast.rate
        extra = headroom(
            forecast,
            memory.trend.dispersion,
            late_share=objective.late_share,
            limit_seconds=objective.limit_ms / 1000,
            startup_seconds=ahead - LOOK_MS / 1000,
            caution=memory.caution,
        )
    if capacity is None:
        ready = _ready_units(policy, facts)
        return _without_capacity(memory, scope, rate, rate + extra, backlog, ready, busy=busy)
    needed = min((rate + extra + backlog / _BACKLOG_SECONDS) / capacity, MOST_NEEDED)
    replicas = max(math.floor(needed + 0.5), 1 if busy or backlog else 0)
    detail = f"headroom {extra:.4g}/s at caution {memory.caution:.3g}, backlog {backlog}"
    metric = MetricLoad(name=DEMAND, load=rate, want=replicas, target=capacity, detail=detail)
    return _Want(replicas, metric)


def _without_capacity(
    memory: ObjectiveMemory,
    scope: Scope,
    rate: float,
    load: float,
    backlog: int,
    ready: float,
    *,
    busy: bool,
) -> _Want:
    """Nobody knows what a replica serves, but what it was seen to do.

    More only where requests wait: as many as the load takes at that pace, at most four times what
    is ready, and twice that while nothing was seen. Fewer as far as the pace goes.
    """
    replicas = scope.current
    work = load + backlog / _BACKLOG_SECONDS
    seen = math.ceil(min(work / memory.shown, MOST_NEEDED)) if memory.shown > 0 else None
    if backlog > scope.current:
        asked = 2 * ready if seen is None else min(seen, _MOST_GROWTH * ready)
        replicas = max(replicas, math.floor(asked))
    elif seen is not None:
        replicas = min(seen, replicas)
    replicas = max(replicas, 1) if busy or backlog else 0
    detail = f"capacity not known yet, {memory.shown:.4g}/s seen; backlog {backlog}"
    metric = MetricLoad(name=DEMAND, load=rate, want=replicas, target=memory.shown, detail=detail)
    return _Want(replicas, metric)


def _supported(want: _Want, facts: Facts, scope: Scope, *, fresh: bool) -> tuple[int, str]:
    """What the data allow, and why."""
    if want.replicas >= scope.current:
        return want.replicas, "more is never doubted"
    if not fresh:
        return scope.current, "the engines' sample is partial or stale"
    unready = sum(target.unready for target in facts.targets)
    supported = min(want.replicas + unready, scope.current)
    return supported, f"{unready} unready" if unready else "whole"


@functools.lru_cache(maxsize=1024)
def _behaviour(held_ms: int) -> Behaviour:
    """At once up; down only from the most that was needed in a while."""
    return Behaviour(scale_down=StepPolicy(period_ms=0, stabilisation_ms=held_ms))


def _price(memory: ObjectiveMemory, scope: Scope) -> int:
    return price(scope.current, hold_ms(memory.startup_ms))


def _price_step(before: int, current: int, worth: int, asked: int) -> LimiterStep:
    return LimiterStep(
        name=Limiter.STABILISATION,
        before=before,
        after=before if worth >= asked else current,
        detail=f"{worth // 1000} of {asked // 1000} replica-seconds to spare",
    )
