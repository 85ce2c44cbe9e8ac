"""One target's part of a sample, from what its pods and the Prometheus servers answered.

Invariant: every ready pod is either counted as read or named as missing, and whatever keeps the
sample from being whole is told in it (autoscaling spec 2.5, D4, D5, D10).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from inferbus_contracts.errors import shorten
from inferbus_contracts.events.metrics import MetricAggregate, TargetSample
from inferbus_contracts.events.workload import PodFact
from inferbus_metrics_collector.plans import Page, PodMetric, TargetPlan
from inferbus_metrics_collector.policy_aggregate import Aggregated, aggregate
from inferbus_metrics_collector.policy_history import PodReading
from inferbus_metrics_collector.policy_selection import is_failed, is_ready, standing_pods
from inferbus_metrics_collector.policy_series import PodValue, Unusable, pod_value

MOST_PROBLEMS = 8
"""Of one target in one sample; each at most 200 characters."""


_FOREIGN = Unusable("nothing looked for is on its page, as it is on others': whose page is it?")
"""Pods of one role run the same engine: one whose page is quite another is not idle (D10)."""


@dataclass(frozen=True, slots=True)
class Census:
    """The pods that a target's metrics are about."""

    ready: tuple[PodFact, ...]
    unready: int
    failed: int


@dataclass(frozen=True, slots=True)
class Failure:
    """There is no answer; why, in a few words."""

    reason: str


class TargetOutcome(NamedTuple):
    """One target after a round."""

    sample: TargetSample
    window_ms: int
    """The longest span behind its rates."""
    lasting: tuple[str, ...]
    """The problems that won't end by themselves."""


PageOutcomes = Mapping[tuple[str, Page], PodReading | Failure]
"""By pod name and page."""

QueryOutcomes = Mapping[str, float | Failure]
"""By metric name."""


def census(target: TargetPlan, pods: Iterable[PodFact]) -> Census:
    """The pods of a workload that the target's metrics mean; all that stand for it without any."""
    standing = standing_pods(pods, target.key.role)
    metrics = target.pod_metrics
    if metrics:
        standing = [
            pod
            for pod in standing
            if any(metric.selector.matches(pod.labels) for metric in metrics)
        ]
    ready = tuple(sorted(filter(is_ready, standing), key=lambda pod: pod.name))
    failed = sum(is_failed(pod) for pod in standing)
    return Census(ready, len(standing) - len(ready) - failed, failed)


def still_standing(pods: Census, present: Iterable[PodFact], role: str) -> Census:
    """Without the ready pods that have begun to go since: a page that a pod takes along on its way
    out is not missing, as its load would not have counted (D4)."""
    standing = {pod.uid for pod in standing_pods(present, role)}
    return replace(pods, ready=tuple(pod for pod in pods.ready if pod.uid in standing))


def pages_of(pod: PodFact, metrics: Sequence[PodMetric]) -> frozenset[Page]:
    """The pages that must be read of one pod."""
    return frozenset(metric.page for metric in metrics if metric.selector.matches(pod.labels))


def target_sample(
    target: TargetPlan, pods: Census, pages: PageOutcomes, queries: QueryOutcomes
) -> TargetOutcome:
    """What is known of a target after a round."""
    metrics: list[MetricAggregate] = []
    missing, problems = _incomplete(pages)
    passing: list[str] = []
    window_ms = 0
    for metric in target.pod_metrics:
        outcome = _over_pods(metric, pods, pages)
        metrics += [outcome.metric] if outcome.metric is not None else []
        missing |= outcome.silent
        problems += outcome.problems
        passing += outcome.passing
        window_ms = max(window_ms, outcome.window_ms)
    for external in target.prometheus_metrics:
        answer = queries[external.name]
        if isinstance(answer, Failure):
            problems.append(f"{external.name}: {answer.reason}")
        else:
            metrics.append(MetricAggregate(name=external.name, kind=external.kind, value=answer))
    sample = TargetSample(
        target=str(target.key),
        metrics=metrics,
        ready_pods=len(pods.ready) - len(missing),
        unready_pods=pods.unready,
        failed_pods=pods.failed,
        missing=sorted(missing),
        problems=_shown([*problems, *passing]),
        beside=_beside(target, pods, pages) or None,
    )
    return TargetOutcome(sample, window_ms, tuple(_shown(problems)))


def _beside(target: TargetPlan, pods: Census, pages: PageOutcomes) -> list[MetricAggregate]:
    found = (_over_pods(metric, pods, pages).metric for metric in target.beside)
    return [metric for metric in found if metric is not None]


def _incomplete(pages: PageOutcomes) -> tuple[set[str], list[str]]:
    """Pods of which a page is missing or damaged, and what is wrong with each."""
    missing, problems = set(), []
    for (pod, page), outcome in sorted(pages.items(), key=lambda item: item[0]):
        if isinstance(outcome, Failure):
            missing.add(pod)
            problems.append(f"pod {pod}: {page}: {outcome.reason}")
        elif damage := outcome.now.scan.damage:
            missing.add(pod)
            problems += (f"pod {pod}: {what}" for what in damage)
    return missing, problems


def _over_pods(metric: PodMetric, pods: Census, pages: PageOutcomes) -> Aggregated:
    values: dict[str, PodValue | Unusable | None] = {}
    foreign: list[PodFact] = []
    answering: set[str] = set()
    for pod in pods.ready:
        reading = pages.get((pod.name, metric.page))
        if not isinstance(reading, PodReading) or not metric.selector.matches(pod.labels):
            continue
        value = pod_value(metric.families, reading.now, reading.past)
        values[pod.name] = value
        if value is not None:
            answering.add(pod.role)
        elif reading.now.scan.is_foreign:
            foreign.append(pod)
    values |= {pod.name: _FOREIGN for pod in foreign if pod.role in answering}
    found = aggregate(metric.name, values)
    absent = metric.is_optional and not any(values.values())
    return replace(found, problems=()) if absent else found


def _shown(problems: Sequence[str]) -> list[str]:
    more = len(problems) - MOST_PROBLEMS
    shown = [shorten(problem) for problem in problems[:MOST_PROBLEMS]]
    return [*shown, f"and {more} more"] if more > 0 else shown
