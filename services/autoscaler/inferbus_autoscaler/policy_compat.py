"""One look at a key under upstream's rules: from a sample to one loop of `policy_compat_head`.

Turns a sample into what upstream would have scraped: one failed or silent pod drops the metrics of
its target, version 0.1 sees nothing while a pod is unready (autoscaling spec 2.5, 3.1). Invariant:
a loop that upstream would have skipped changes nothing.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from inferbus_autoscaler.evaluation import Evaluation
from inferbus_autoscaler.events import Sampled, TargetReading
from inferbus_autoscaler.facts import Facts, PolicyFacts
from inferbus_autoscaler.policy_compat_head import CompatLoop, run_loop
from inferbus_autoscaler.policy_correction import (
    HEAD_MIX_RULES,
    HEAD_RULES,
    V01_RULES,
    CompatRules,
    CompatWindows,
)
from inferbus_autoscaler.policy_external import aggregate_external
from inferbus_autoscaler.policy_history import History
from inferbus_autoscaler.policy_need import MetricLoad
from inferbus_autoscaler.policy_recommendation import RecommendationInput, metric_wants
from inferbus_autoscaler.policy_standing import current_replicas, standing
from inferbus_autoscaler.policy_windows import RateWindow, RecommendationWindow
from inferbus_autoscaler.stamps import shortened
from inferbus_autoscaler.state import CompatMemory, TargetState
from inferbus_contracts.events.metrics import MetricKind
from inferbus_contracts.events.scaling import Limiter, LimiterStep, Mode
from inferbus_contracts.resources.annotations import Compat

_EXTERNAL = frozenset(
    {MetricKind.EXTERNAL_TOTAL, MetricKind.EXTERNAL_AVERAGE, MetricKind.EXTERNAL_UTILISATION}
)


@dataclass(frozen=True)
class _Scraped:
    """What upstream's collector would have brought home from one target."""

    pods: Mapping[str, float]
    external: Mapping[str, float]
    unready: int


def evaluate_compat(
    state: TargetState, policy: PolicyFacts, facts: Facts, sample: Sampled, now_ms: int
) -> Evaluation | None:
    """Run one loop; None where upstream would have skipped it.

    While a target is frozen the loop is run for its number alone and leaves no trace.
    """
    given = _loop_input(state, policy, facts, sample)
    rules = _rules(policy)
    memory = _memory(state, policy, rules)
    result = run_loop(memory.loop, given, policy.behaviour, now_ms, rules)
    if result.want is None or result.applied is None:
        return None
    steps = (*_bound_step(given, result.want), *result.steps)
    after = replace(
        state,
        reading=None,
        history=History(),
        compat=replace(memory, loop=_bounded(result.loop, policy.most_stamps)),
    )
    if facts.frozen:
        after = state
        steps = (
            *steps,
            LimiterStep(name=Limiter.FREEZE, before=result.applied, after=given.current),
        )
    return Evaluation(
        state=after,
        current=given.current,
        desired=steps[-1].after,
        mode=Mode.PANIC if result.panic else Mode.STABLE,
        capacity=float(steps[-1].after),
        metrics=_metric_loads(given),
        steps=steps,
    )


def _rules(policy: PolicyFacts) -> CompatRules:
    if policy.compat is Compat.KTHENA_V01:
        return V01_RULES
    return HEAD_MIX_RULES if policy.mix else HEAD_RULES


def _memory(state: TargetState, policy: PolicyFacts, rules: CompatRules) -> CompatMemory:
    """Every edit of the policy wipes the memory; version 0.1 keeps its first one for ever."""
    memory = state.compat
    keeps = policy.compat is Compat.KTHENA_V01
    if memory is None or not (keeps or memory.generation == policy.generation):
        loop = CompatLoop.first(policy.behaviour, rules)
        return CompatMemory(generation=policy.generation, loop=loop)
    return memory


def _loop_input(
    state: TargetState, policy: PolicyFacts, facts: Facts, sample: Sampled
) -> RecommendationInput:
    members = [
        (member, target)
        for member in policy.targets
        if (target := facts.target(member.key)) is not None
    ]
    scraped = [
        _scraped(policy, sample.reading(member.key) or TargetReading(target=member.key))
        for member, _ in members
    ]
    if policy.mix:
        replicas = [standing(state, target).replicas for _, target in members]
    else:
        replicas = [current_replicas(state, target) for _, target in members]
    inert = policy.mix and policy.compat is Compat.KTHENA_V01
    return RecommendationInput(
        min_replicas=sum(member.min_replicas for member, _ in members),
        max_replicas=sum(member.max_replicas for member, _ in members),
        current=sum(replicas),
        tolerance_percent=policy.tolerance_percent,
        targets={} if inert else {metric.name: metric.target for metric in policy.metrics},
        entries=[part.pods for part in scraped],
        unready_pods=sum(part.unready for part in scraped),
        external_totals=_external_totals(policy, scraped, replicas),
    )


def _scraped(policy: PolicyFacts, reading: TargetReading) -> _Scraped:
    """One failed or silent pod drops the metrics of all pods, a failed one the unready ones too."""
    values = {metric.name: metric.value for metric in reading.metrics if metric.value is not None}
    external = {
        metric.name: values[metric.name]
        for metric in reading.metrics
        if metric.kind in _EXTERNAL and metric.name in values
    }
    if policy.compat is Compat.KTHENA_V01 and reading.ready_pods:
        values = {metric.name: 0.0 for metric in policy.metrics} | values
    blind = policy.compat is Compat.KTHENA_V01 and reading.unready_pods > 0
    drop = reading.failed_pods > 0 or reading.missing_pods > 0 or blind
    return _Scraped(
        pods={} if drop else {name: values[name] for name in values.keys() - external.keys()},
        external=external,
        unready=0 if reading.failed_pods else reading.unready_pods,
    )


def _external_totals(
    policy: PolicyFacts, scraped: Sequence[_Scraped], replicas: Sequence[int]
) -> dict[str, float]:
    totals = {}
    for metric in policy.metrics:
        name = metric.name
        given = [
            (part.external[name], count)
            for part, count in zip(scraped, replicas, strict=True)
            if name in part.external
        ]
        if given and policy.mix:
            values, counts = zip(*given, strict=True)
            totals[name] = aggregate_external(name, values, counts)
        elif given:
            totals[name] = given[0][0]
    return totals


def _bound_step(given: RecommendationInput, want: int) -> tuple[LimiterStep, ...]:
    wants = [asked for asked in metric_wants(given).values() if asked is not None]
    asked = max(wants, default=given.current)
    return (LimiterStep(name=Limiter.BOUNDS, before=asked, after=want),)


def _metric_loads(given: RecommendationInput) -> tuple[MetricLoad, ...]:
    return tuple(
        MetricLoad(
            name=name,
            load=given.external_totals.get(name, _pod_total(given, name)),
            want=want,
        )
        for name, want in metric_wants(given).items()
    )


def _pod_total(given: RecommendationInput, name: str) -> float | None:
    values = [entry[name] for entry in given.entries if name in entry]
    return math.fsum(values) if values else None


def _bounded(loop: CompatLoop, most_stamps: int) -> CompatLoop:
    """The loop with windows that a record can hold; exact for 30 min of one loop every 15 s."""
    windows = loop.windows
    return replace(
        loop,
        windows=CompatWindows(
            stabilise_down=_short(windows.stabilise_down, most_stamps),
            stabilise_up=_short(windows.stabilise_up, most_stamps),
            rate_down=_short(windows.rate_down, most_stamps),
            rate_up=_short(windows.rate_up, most_stamps),
            rate_panic=_short(windows.rate_panic, most_stamps),
        ),
    )


Window = TypeVar("Window", RecommendationWindow, RateWindow)


def _short(window: Window, most_stamps: int) -> Window:
    if len(window.items) <= most_stamps:
        return window
    return replace(window, items=shortened(window.items, most_stamps))
