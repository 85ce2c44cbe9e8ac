"""One round of one plan: read what it names, put it together, send it.

Invariant: a round ends within the deadline of its pages and queries and gives one sample, or none
where its target isn't there; the id of a sample says what it is of, so doing a round twice is the
same as doing it once.
"""

import asyncio
from collections.abc import Callable, Mapping

from inferbus_contracts.envelope import event_id
from inferbus_contracts.events.metrics import MetricsSampled, TargetSample
from inferbus_contracts.events.workload import PodFact, WorkloadObserved
from inferbus_contracts.keys import ObjectKey
from inferbus_metrics_collector.plans import Page, PrometheusMetric, SamplePlan, TargetPlan
from inferbus_metrics_collector.pod_pages import PodPages
from inferbus_metrics_collector.policy_history import PodReading
from inferbus_metrics_collector.policy_sample import Failure, census, pages_of, target_sample
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
        self._asking: UnderWay[tuple[str, str], float] = UnderWay()

    async def sample(
        self,
        plan: SamplePlan,
        round_: Round,
        workloads: Mapping[ObjectKey, WorkloadObserved],
        wanted: Wanted,
    ) -> None:
        """Take one sample; `workloads` holds every target of the plan.

        Raises `ProblemsError` when it can't be stored.
        """
        parts = await asyncio.gather(
            *(self._target(item, workloads[item.key.owner], wanted) for item in plan.targets)
        )
        data = MetricsSampled(
            policy=str(plan.policy),
            taken_at_ms=self._now_ms(),
            window_ms=max(window_ms for _, window_ms in parts),
            targets=[sample for sample, _ in parts],
        )
        await self._sink.emit(plan.key, data, sample_id(plan, round_))

    async def _target(
        self, target: TargetPlan, workload: WorkloadObserved, wanted: Wanted
    ) -> tuple[TargetSample, int]:
        pods = census(target, workload.pods)
        places = [(pod, page) for pod in pods.ready for page in pages_of(pod, target.pod_metrics)]
        externals = target.prometheus_metrics
        readings, answers = await asyncio.gather(
            asyncio.gather(
                *(self._page(pod, page, wanted[target.key.owner, page]) for pod, page in places)
            ),
            asyncio.gather(*(self._answer(metric) for metric in externals)),
        )
        return target_sample(
            target,
            pods,
            {
                (pod.name, page): reading
                for (pod, page), reading in zip(places, readings, strict=True)
            },
            {metric.name: answer for metric, answer in zip(externals, answers, strict=True)},
        )

    async def _page(
        self, pod: PodFact, page: Page, families: frozenset[str]
    ) -> PodReading | Failure:
        try:
            return await self._pages.read(pod, page, families)
        except ScrapeError as error:
            return Failure(str(error))

    async def _answer(self, metric: PrometheusMetric) -> float | Failure:
        try:
            return await self._asking.join(
                (metric.server_url, metric.query),
                lambda: self._queries.query(metric.server_url, metric.query),
            )
        except ScrapeError as error:
            return Failure(str(error))
