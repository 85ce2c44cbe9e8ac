"""One round, with real pages: what goes out, under which id, and what was read for it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping

import pytest
from collector_builders import (
    gauge_page,
    mix,
    planned,
    pod,
    policy,
    role,
    serving,
    single,
    workload,
)
from prometheus_client import CollectorRegistry

from inferbus_contracts.base import EventData
from inferbus_contracts.events.metrics import MetricKind, MetricsSampled
from inferbus_contracts.events.workload import WorkloadObserved
from inferbus_contracts.keys import ObjectKey
from inferbus_metrics_collector.core import wanted_families
from inferbus_metrics_collector.effects import Sampler, sample_id
from inferbus_metrics_collector.plans import SamplePlan
from inferbus_metrics_collector.pod_pages import PodPages
from inferbus_metrics_collector.policy_history import Window
from inferbus_metrics_collector.policy_schedule import Round
from inferbus_metrics_collector.ports import Endpoint, ScrapeError
from inferbus_metrics_collector.telemetry import ScrapeMetrics


class World:
    """Pages by address, answers by query, a clock, and what was emitted."""

    def __init__(self) -> None:
        self.now_ms = 100_000
        self.pages: dict[str, bytes] = {}
        self.answers: dict[str, float] = {}
        self.read: list[Endpoint] = []
        self.asked: list[str] = []
        self.meanwhile: Callable[[], object] = lambda: None
        """Happens while pages are read."""
        self.emitted: list[tuple[ObjectKey, MetricsSampled, str]] = []
        pages = PodPages(
            self,
            lambda: self.now_ms,
            ScrapeMetrics(CollectorRegistry()),
            window=Window(length_ms=10_000, interval_ms=5_000),
            timeout_seconds=5,
            concurrency=4,
        )
        self.sampler = Sampler(pages, self, self, lambda: self.now_ms)

    async def get(self, endpoint: Endpoint) -> bytes:
        self.read.append(endpoint)
        await asyncio.sleep(0)
        self.meanwhile()
        if endpoint.address not in self.pages:
            raise ScrapeError("cannot connect")
        return self.pages[endpoint.address]

    async def query(self, server_url: str, query: str) -> float:
        self.asked.append(f"{server_url} {query}")
        await asyncio.sleep(0)
        if query not in self.answers:
            raise ScrapeError("HTTP status 500")
        return self.answers[query]

    async def emit(self, key: ObjectKey, data: EventData, event_id: str) -> None:
        assert isinstance(data, MetricsSampled)
        self.emitted.append((key, data, event_id))

    async def sample(
        self, plans: Mapping[ObjectKey, SamplePlan], facts: Mapping[ObjectKey, WorkloadObserved]
    ) -> list[MetricsSampled]:
        """One round of every plan at once."""
        before = len(self.emitted)
        wanted = wanted_families(plans.values())
        await asyncio.gather(
            *(
                self.sampler.sample(plan, Round(key, 20), facts, wanted)
                for key, plan in plans.items()
            )
        )
        return [data for _, data, _ in self.emitted[before:]]


@contextlib.asynccontextmanager
async def two_pods() -> AsyncIterator[tuple[World, WorkloadObserved]]:
    world = World()
    world.pages = {"10.0.0.1": gauge_page(3), "10.0.0.2": gauge_page(4)}
    pods = [pod(f"m-{n}", address=f"10.0.0.{n}", role=f"r{n}") for n in (1, 2)]
    yield world, workload(*pods)


async def test_a_target_is_one_sample_with_the_sum_of_its_pods() -> None:
    async with two_pods() as (world, fact):
        found = planned(policy(homogeneousTarget=single()))
        (data,) = await world.sample(found.plans, {serving(): fact})
        assert world.emitted[0][0] == serving()
        assert (data.policy, data.taken_at_ms) == ("AutoscalingPolicy/default/p", 100_000)
        (target,) = data.targets
        assert (target.target, target.ready_pods) == (str(serving()), 2)
        assert [(item.name, item.value, item.pods) for item in target.metrics] == [("load", 7.0, 2)]


async def test_a_mix_is_one_sample_with_a_part_per_target() -> None:
    async with two_pods() as (world, fact):
        found = planned(policy(heterogeneousTarget=mix("x", "y")))
        facts = {serving("x"): fact, serving("y"): workload()}
        (data,) = await world.sample(found.plans, facts)
        assert world.emitted[0][0] == ObjectKey("AutoscalingPolicy", "default", "p")
        assert [(item.target, item.ready_pods) for item in data.targets] == [
            (str(serving("x")), 2),
            (str(serving("y")), 0),
        ]


def engine_pages(tokens: int, waiting: int) -> dict[str, bytes]:
    counter = f"# TYPE vllm:generation_tokens counter\nvllm:generation_tokens_total {tokens}\n"
    gauge = gauge_page(waiting, "vllm:num_requests_waiting")
    page = gauge_page(3) + counter.encode() + gauge
    return {"10.0.0.1": page, "10.0.0.2": page}


async def test_a_mix_also_tells_what_its_capacities_are_learned_from() -> None:
    async with two_pods() as (world, fact):
        found = planned(policy(heterogeneousTarget=mix("x", "y")))
        facts = {serving("x"): fact, serving("y"): workload()}
        world.pages = engine_pages(tokens=1000, waiting=4)
        (first,) = await world.sample(found.plans, facts)
        assert (first.targets[0].missing, first.targets[0].problems) == ([], [])
        world.now_ms += 5_000
        world.pages = engine_pages(tokens=6000, waiting=5)
        (second,) = await world.sample(found.plans, facts)
        one, other = second.targets
        assert [(item.name, item.kind, item.value, item.pods) for item in one.beside or ()] == [
            ("output-tokens", MetricKind.RATE, 2000.0, 2),
            ("waiting-requests", MetricKind.GAUGE, 10.0, 2),
        ]
        assert [item.name for item in one.metrics] == ["load"]
        assert other.beside is None


async def test_engines_that_tell_nothing_of_it_lack_nothing() -> None:
    async with two_pods() as (world, fact):
        found = planned(policy(heterogeneousTarget=mix("x", "y")))
        (data,) = await world.sample(found.plans, {serving("x"): fact, serving("y"): workload()})
        told = data.targets[0]
        assert (told.beside, told.missing, told.problems) == (None, [], [])
        alone = planned(policy(homogeneousTarget=single()))
        world.pages = engine_pages(tokens=1000, waiting=4)
        (single_,) = await world.sample(alone.plans, {serving(): fact})
        assert single_.targets[0].beside is None


async def test_policies_that_need_one_page_share_one_reading_of_it() -> None:
    async with two_pods() as (world, fact):
        roles = {"targetRef": {"name": "m"}, "roles": {"r1": role(), "r2": role()}}
        found = planned(policy(homogeneousTarget=single()), policy("q", disaggregatedTarget=roles))
        samples = await world.sample(found.plans, {serving(): fact})
        parts = [part for item in samples for part in item.targets]
        values = {part.target: part.metrics[0].value for part in parts}
        assert len(samples) == 2
        assert values == {
            str(serving()): 7.0,
            str(serving(role="r1")): 3.0,
            str(serving(role="r2")): 4.0,
        }
        assert len(world.read) == 2


@pytest.mark.parametrize("answers", [True, False])
async def test_as_d4_a_pod_that_begins_to_go_while_it_is_read_is_neither_missing_nor_counted(
    answers: bool,
) -> None:
    async with two_pods() as (world, fact):
        found = planned(policy(homogeneousTarget=single()))
        if not answers:
            del world.pages["10.0.0.2"]
        leaving = fact.pods[1].model_copy(update={"deleting": True})
        facts = {serving(): fact}
        world.meanwhile = lambda: facts.update({serving(): workload(fact.pods[0], leaving)})
        (data,) = await world.sample(found.plans, facts)
        (target,) = data.targets
        assert (target.ready_pods, target.missing, target.problems) == (1, [], [])
        assert [item.value for item in target.metrics] == [3.0]


async def test_a_silent_pod_that_became_unready_while_it_was_read_is_missing() -> None:
    async with two_pods() as (world, fact):
        found = planned(policy(homogeneousTarget=single()))
        del world.pages["10.0.0.2"]
        broken = fact.pods[1].model_copy(update={"ready": False})
        facts = {serving(): fact}
        world.meanwhile = lambda: facts.update({serving(): workload(fact.pods[0], broken)})
        (data,) = await world.sample(found.plans, facts)
        assert data.targets[0].missing == ["m-2"]


async def test_a_workload_that_goes_while_it_is_read_gives_no_value() -> None:
    async with two_pods() as (world, fact):
        found = planned(policy(homogeneousTarget=single()))
        facts = {serving(): fact}
        world.meanwhile = facts.clear
        (data,) = await world.sample(found.plans, facts)
        assert (data.targets[0].ready_pods, data.targets[0].metrics) == (0, [])


async def test_counters_become_rates_between_rounds_and_a_new_pod_waits_for_its_second() -> None:
    async with two_pods() as (world, fact):
        found = planned(policy(homogeneousTarget=single()))
        world.pages = {"10.0.0.1": b"# TYPE load counter\nload 100\n"}
        alone = workload(fact.pods[0])
        (first,) = await world.sample(found.plans, {serving(): alone})
        assert (first.targets[0].metrics, first.targets[0].missing) == ([], ["m-1"])
        world.now_ms += 5_000
        world.pages = {
            "10.0.0.1": b"# TYPE load counter\nload 150\n",
            "10.0.0.2": b"# TYPE load counter\nload 9000\n",
        }
        (second,) = await world.sample(found.plans, {serving(): fact})
        (metric,) = second.targets[0].metrics
        assert (metric.kind, metric.value, metric.pods) == (MetricKind.RATE, 10.0, 1)
        assert second.targets[0].missing == ["m-2"]
        assert second.window_ms == 5_000


async def test_a_pod_that_took_over_an_address_does_not_inherit_its_counters() -> None:
    async with two_pods() as (world, fact):
        found = planned(policy(homogeneousTarget=single()))
        world.pages = {"10.0.0.1": b"# TYPE load counter\nload 100\n"}
        await world.sample(found.plans, {serving(): workload(fact.pods[0])})
        world.now_ms += 5_000
        world.pages = {"10.0.0.1": b"# TYPE load counter\nload 150\n"}
        successor = fact.pods[0].model_copy(update={"uid": "another"})
        (second,) = await world.sample(found.plans, {serving(): workload(successor)})
        assert second.targets[0].metrics == []


async def test_one_query_is_asked_once_for_all_targets_and_its_failure_is_told() -> None:
    world = World()
    world.answers = {"good": 12.0}
    sources = {
        name: {"prometheus": {"serverURL": "http://prom", "query": name}}
        for name in ("good", "bad")
    }
    metrics = [{"name": name, "targetValue": 1} for name in ("good", "bad")]
    found = planned(
        policy("a", metrics=metrics, homogeneousTarget=single("x", metricSources=sources)),
        policy("b", metrics=metrics, homogeneousTarget=single("y", metricSources=sources)),
    )
    facts = {serving("x"): workload(), serving("y"): workload()}
    for data in await world.sample(found.plans, facts):
        (target,) = data.targets
        assert [(item.name, item.kind) for item in target.metrics] == [
            ("good", MetricKind.EXTERNAL_TOTAL)
        ]
        assert target.problems == ["bad: HTTP status 500"]
    assert sorted(world.asked) == ["http://prom bad", "http://prom good"]


def test_the_id_of_a_sample_says_what_it_is_of_and_nothing_else() -> None:
    (plan,) = planned(policy(homogeneousTarget=single())).plans.values()
    same = sample_id(plan, Round(plan.key, 7))
    assert same == sample_id(plan, Round(plan.key, 7))
    (other,) = planned(policy(homogeneousTarget=single("other"))).plans.values()
    different = {
        sample_id(plan, Round(plan.key, 8)),
        sample_id(plan, Round(plan.key, 7, "event")),
        sample_id(other, Round(other.key, 7)),
    }
    assert len(different | {same}) == 4
