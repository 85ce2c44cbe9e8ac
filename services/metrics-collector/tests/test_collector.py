"""The whole collector on a real bus: facts come from their writers, samples go out."""

import contextlib
from collections import Counter
from collections.abc import AsyncIterator

import pytest
from collector_builders import (
    binding,
    gauge_page,
    pod,
    policy,
    serving,
    single,
    workload,
)
from collector_platform import INTERVAL_SECONDS, platform, scaled, told
from collector_servers import PageServer, dripping, endless, good, page_server, silent

from inferbus_contracts.base import EventData
from inferbus_contracts.envelope import event_id
from inferbus_contracts.events.metrics import MetricsSampled
from inferbus_contracts.events.spec import SpecChanged
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.services import Service
from inferbus_shared.bus.messages import Received
from tests.support.eventually import eventually
from tests.support.nats import NatsServer

LONG_SECONDS = 8.0
"""An interval of which news wait a fifth at most, and rounds all of it."""
TARGETS = 12


@pytest.fixture
async def page() -> AsyncIterator[PageServer]:
    async with page_server(good(gauge_page(4))) as server:
        yield server


async def test_a_target_that_appears_is_sampled_at_once(
    nats_server: NatsServer, page: PageServer, caplog: pytest.LogCaptureFixture
) -> None:
    async with platform(nats_server) as (world, collect):
        await world.apply(policy())
        await world.apply(scaled(page))
        await collect("a", interval_seconds=60)
        await eventually(lambda: "a target does not exist" in caplog.text)
        await world.observe(serving(), workload(pod("m-0", ready=False)))
        await eventually(lambda: len(world.of(serving())) == 1, timeout=6)
        (first,) = world.of(serving())
        assert first.policy == "AutoscalingPolicyBinding/default/b-m"
        assert (first.targets[0].ready_pods, first.targets[0].unready_pods) == (0, 1)


async def test_news_do_not_wait_for_the_next_round(
    nats_server: NatsServer, page: PageServer
) -> None:
    async with platform(nats_server) as (world, collect):
        await world.apply(policy())
        await world.apply(scaled(page))
        await world.observe(serving(), workload(pod("m-0", ready=False)))
        await collect("a", interval_seconds=LONG_SECONDS)
        await eventually(lambda: world.of(serving()))
        await world.observe(serving(), workload(pod("m-0")))
        await eventually(lambda: world.values(serving()) == [4.0], timeout=LONG_SECONDS / 2)
        page.answer = good(gauge_page(9, "queue"))
        renamed = policy(metrics=[{"metricName": "queue", "targetValue": 1}])
        await world.apply(renamed, generation=2)
        await eventually(lambda: world.values(serving()) == [4.0, 9.0], timeout=LONG_SECONDS / 2)
        assert len({event.id for event in world.samples}) == 3


async def test_a_deleted_policy_is_sampled_no_more(
    nats_server: NatsServer, page: PageServer, caplog: pytest.LogCaptureFixture
) -> None:
    async with platform(nats_server) as (world, collect):
        await world.apply(policy())
        await world.apply(scaled(page))
        await world.observe(serving(), workload(pod()))
        await collect("a")
        await eventually(lambda: world.values(serving()))
        await world.apply(policy(), deleted=True)
        other = policy("other", homogeneousTarget=single("n"))
        await world.observe(serving("n"), workload())
        await world.apply(other)
        await eventually(lambda: world.of(serving("n")))
        before = len(world.of(serving()))
        rounds = len(world.of(serving("n")))
        await eventually(lambda: len(world.of(serving("n"))) > rounds + 2)
        assert len(world.of(serving())) == before
        assert "does not fit" not in told(caplog)


async def test_a_policy_for_something_that_is_missing_is_silent_until_it_is_there(
    nats_server: NatsServer, page: PageServer, caplog: pytest.LogCaptureFixture
) -> None:
    async with platform(nats_server) as (world, collect):
        await world.apply(policy())
        await world.apply(scaled(page))
        await world.apply(
            binding("lost", scalingConfiguration=single("n"), policyRef={"name": "x"})
        )
        await collect("a")
        await eventually(lambda: "a target does not exist" in caplog.text)
        await eventually(lambda: "the binding's policy does not exist" in told(caplog))
        assert world.samples == []
        await world.observe(serving(), workload(pod()))
        await eventually(lambda: world.values(serving()))
        assert caplog.text.count("a target does not exist") == 1


async def test_an_unreadable_object_is_told_and_costs_nothing_else(
    nats_server: NatsServer, page: PageServer, caplog: pytest.LogCaptureFixture
) -> None:
    async with platform(nats_server) as (world, collect):
        broken = SpecChanged(uid="u", generation=1, digest="", object={"spec": {"metrics": 7}})
        await world._publish(world._specs, ObjectKey("AutoscalingPolicy", "default", "x"), broken)
        await world.apply(policy())
        await world.apply(scaled(page))
        await world.observe(serving(), workload(pod()))
        await collect("a")
        await eventually(lambda: world.values(serving()))
        assert "does not fit its schema" in told(caplog)


async def test_two_instances_share_the_work_and_make_one_sample_per_target_and_round(
    nats_server: NatsServer, page: PageServer
) -> None:
    keys = [serving(f"m{number}") for number in range(TARGETS)]
    async with platform(nats_server) as (world, collect):
        await world.apply(policy())
        for key in keys:
            await world.apply(scaled(page, key.name))
            await world.observe(key, workload(pod(f"{key.name}-0")))
        await collect("a")
        await eventually(lambda: all(world.of(key) for key in keys))
        await collect("b")
        sources = {f"{Service.METRICS_COLLECTOR}/{name}" for name in "ab"}
        await eventually(lambda: sources == {event.envelope.source for event in world.samples})
        before, read = len(world.samples), len(page.requests)
        await eventually(lambda: len(world.samples) >= before + 8 * TARGETS)
        shared = world.samples[before:]
        work = Counter(event.envelope.source for event in shared)
        assert min(work.values()) >= 0.3 * work.total()
        assert len(page.requests) - read <= 1.2 * len(shared), "no page is read by both"
        for key in keys:
            numbers = (round_of(event) for event in shared if event.key == key)
            rounds = [number for number in numbers if number is not None]
            assert rounds == sorted(set(rounds)), "each round has one sample, and one id"
            assert rounds[-1] - rounds[0] <= len(rounds), "no round is left out"


def round_of(event: Received[EventData]) -> int | None:
    """The round whose plain id the sample has; None for one taken in between, e.g. an overrun."""
    assert isinstance(event.data, MetricsSampled)
    identity = f"uid-b-{event.key.name}:1/uid-p:1"
    latest = int(event.data.taken_at_ms / 1000 / INTERVAL_SECONDS)
    plain = (
        number
        for number in range(latest, latest - 50, -1)
        if event_id("metrics.sampled", event.key, f"{identity}|{number}|") == event.id
    )
    return next(plain, None)


async def test_a_target_that_hangs_is_read_once_at_a_time_and_delays_no_other(
    nats_server: NatsServer, page: PageServer
) -> None:
    async with page_server(silent) as slow, platform(nats_server) as (world, collect):
        await world.apply(policy())
        for name, server in (("m", page), ("n", slow)):
            await world.apply(scaled(server, name))
            await world.observe(serving(name), workload(pod(f"{name}-0")))
        registry = await collect("a")

        def outcomes(outcome: str) -> float:
            name = "inferbus_metrics_collector_samples_total"
            return registry.get_sample_value(name, {"outcome": outcome}) or 0.0

        await eventually(lambda: outcomes("overrun") >= 4)
        assert len(slow.requests) == 1
        assert world.of(serving("n")) == []
        assert len(world.values(serving())) >= 4
        slow.answer = good(gauge_page(5))
        await eventually(lambda: world.values(serving("n")))
        first = world.of(serving("n"))[0].targets[0]
        assert (first.missing, first.metrics) == (["n-0"], [])


async def test_as_d09_ten_hostile_targets_of_a_hundred_cost_the_others_no_round(
    nats_server: NatsServer, page: PageServer
) -> None:
    """A deadline of its own for each: upstream shares one by all, and one pod takes it."""
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
    answers = [silent, dripping(head, b"X: y\r\n"), endless(head + b"\r\n", b"#\n" * 9000, [])]
    good_ones = [serving(f"m{number}") for number in range(90)]
    bad_ones = [serving(f"n{number}") for number in range(10)]
    async with contextlib.AsyncExitStack() as stack:
        bad = [await stack.enter_async_context(page_server(answer)) for answer in answers]
        world, collect = await stack.enter_async_context(platform(nats_server))
        await world.apply(policy())
        for number, key in enumerate(bad_ones):
            await world.apply(scaled(bad[number % len(bad)], key.name))
            await world.observe(key, workload(pod(f"{key.name}-0")))
        for key in good_ones:
            await world.apply(scaled(page, key.name))
            await world.observe(key, workload(pod(f"{key.name}-0")))
        await collect("a", interval_seconds=1.0)
        await eventually(lambda: all(world.of(key) for key in good_ones))
        began = min(world.of(key)[-1].taken_at_ms for key in good_ones)
        await eventually(lambda: all(len(world.of(key)) >= 3 for key in bad_ones), timeout=30)
        ended = min(world.of(key)[-1].taken_at_ms for key in bad_ones)
        assert ended - began > 3000, "several rounds"
        for key in good_ones:
            rounds = {data.taken_at_ms // 1000 for data in world.of(key)}
            assert len(rounds) >= 0.6 * (ended - began) / 1000, "they keep their rhythm"
        for key in bad_ones:
            assert all(data.targets[0].missing == [f"{key.name}-0"] for data in world.of(key))


async def test_as_d20_a_fact_from_the_future_neither_hastens_nor_holds_up_a_round(
    nats_server: NatsServer, page: PageServer
) -> None:
    day_ms = 24 * 3600 * 1000
    async with platform(nats_server) as (world, collect):
        await world.apply(policy())
        await world.apply(scaled(page))
        await collect("a")
        ahead = pod("m-0", starting_since_ms=2 * day_ms * 365 * 60)
        await world.observe(serving(), workload(ahead), ahead_ms=day_ms)
        await eventually(lambda: len(world.values(serving())) >= 4)
        await world.observe(serving(), workload(), ahead_ms=-day_ms)
        await eventually(lambda: world.of(serving())[-1].targets[0].ready_pods == 0)
        times = [event.time_ms - data.taken_at_ms for event, data in world.samples_of(serving())]
        assert max(map(abs, times)) < day_ms / 2, "samples are of their own time"


async def test_when_an_instance_leaves_the_other_takes_over_its_targets(
    nats_server: NatsServer, page: PageServer
) -> None:
    keys = [serving(f"m{number}") for number in range(4)]
    async with platform(nats_server) as (world, collect):
        await world.apply(policy())
        for key in keys:
            await world.apply(scaled(page, key.name))
            await world.observe(key, workload(pod(f"{key.name}-0")))
        await collect("a")
        async with world.collector("b"):
            await eventually(
                lambda: any(event.envelope.source.endswith("/b") for event in world.samples)
            )
        left = len(world.samples)
        await eventually(lambda: {event.key for event in world.samples[left:]} == set(keys))
        assert {event.envelope.source[-2:] for event in world.samples[left:]} == {"/a"}
