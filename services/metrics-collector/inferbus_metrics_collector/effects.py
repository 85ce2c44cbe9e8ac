"""One round of one plan: read what it names, put it together, send it.

Invariant: a round ends within the deadline of its pages and queries and gives one sample, or none
where its target isn't there; the id of a sample says what it is of, so doing a round twice is the
same as doing it once.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from inferbus_contracts.envelope import event_id
from inferbus_contracts.events.metrics import MetricsSampled
from inferbus_contracts.events.workload import WorkloadObserved
from inferbus_contracts.keys import ObjectKey
from inferbus_metrics_collector.plans import Page, PrometheusMetric, SamplePlan, TargetPlan
from inferbus_metrics_collector.pod_pages import PodPages
from inferbus_metrics_collector.policy_history import PodReading
from inferbus_metrics_collector.policy_sample import (
    Census,
    Failure,
    TargetOutcome,
    census,
    pages_of,
    still_standing,
    target_sample,
)
from inferbus_metrics_collector.policy_schedule import Round
from inferbus_metrics_collector.ports import QuerySource, SampleSink, ScrapeError
from inferbus_metrics_collector.under_way import UnderWay

Wanted = Mapping[tuple[ObjectKey, Page], frozenset[str]]
"""Families to look for, by workload and page."""


def sample_id(plan: SamplePlan, round_: Round) -> str:
    """The id of a round's sample: equal for all instances that take the same round."""
    cause = f"{plan.identity}|{round_.number}|{round_.trigger}"
    return event_id(MetricsSampled.event_type, plan.key, cause)


class Sampler:
    """Takes samples."""

    def __init__(
        self, pages: PodPages, queries: QuerySource, sink: SampleSink, now_ms: Callable[[], int]
    ) -> None:
        self._pages = pages
        self._queries = queries
        self._sink = sink
        self._now_ms = now_ms
        self._asking: UnderWay[tuple[str, str], float | Failure] = UnderWay()

    async def sample(
        self,
        plan: SamplePlan,
        round_: Round,
        workloads: Mapping[ObjectKey, WorkloadObserved],
        wanted: Wanted,
    ) -> list[str]:
        """Take one sample; `workloads` holds every target of the plan, and the facts that arrive
        meanwhile.

        Returns what was wrong and will not pass. Raises `ProblemsError` when it can't be stored.
        """
        begun = [
            self._begin(target, workloads[target.key.owner], wanted) for target in plan.targets
        ]
        tasks = [task for target in begun for task in target.tasks]
        if tasks:
            await asyncio.wait(tasks)
        parts = [target.outcome(workloads.get(target.target.key.owner)) for target in begun]
        data = MetricsSampled(
            policy=str(plan.policy),
            taken_at_ms=self._now_ms(),
            window_ms=max(part.window_ms for part in parts),
            targets=[part.sample for part in parts],
        )
        await self._sink.emit(plan.key, data, sample_id(plan, round_))
        return [f"{part.sample.target}: {text}" for part in parts for text in part.lasting]

    def _begin(
        self, target: TargetPlan, workload: WorkloadObserved, wanted: Wanted
    ) -> "_TargetUnderWay":
        pods = census(target, workload.pods)
        metrics = target.pod_metrics
        return _TargetUnderWay(
            target,
            pods,
            {
                (pod.name, page): self._pages.read(pod, page, wanted[target.key.owner, page])
                for pod in pods.ready
                for page in pages_of(pod, metrics)
            },
            {metric.name: self._answer(metric) for metric in target.prometheus_metrics},
        )

    def _answer(self, metric: PrometheusMetric) -> asyncio.Task[float | Failure]:
        place = (metric.server_url, metric.query)
        return self._asking.join(place, lambda: self._query(*place))

    async def _query(self, server_url: str, query: str) -> float | Failure:
        try:
            return await self._queries.query(server_url, query)
        except ScrapeError as error:
            return Failure(str(error))


@dataclass(frozen=True, slots=True)
class _TargetUnderWay:
    """One target while its pages and queries are read; roles may share them."""

    target: TargetPlan
    pods: Census
    pages: dict[tuple[str, Page], asyncio.Task[PodReading | Failure]]
    answers: dict[str, asyncio.Task[float | Failure]]

    @property
    def tasks(
        self,
    ) -> tuple[asyncio.Task[PodReading | Failure] | asyncio.Task[float | Failure], ...]:
        return (*self.pages.values(), *self.answers.values())

    def outcome(self, present: WorkloadObserved | None) -> TargetOutcome:
        """The target's part of the sample once all tasks are done; `present` is what stands now."""
        facts = present.pods if present is not None else ()
        pods = still_standing(self.pods, facts, self.target.key.role)
        names = {pod.name for pod in pods.ready}
        return target_sample(
            self.target,
            pods,
            {place: task.result() for place, task in self.pages.items() if place[0] in names},
            {name: task.result() for name, task in self.answers.items()},
        )
