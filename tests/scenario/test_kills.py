"""`kill -9` of any one process while load runs: it comes back, and nothing is lost or doubled."""

import asyncio
import itertools
import os
import signal
from collections.abc import Callable, Coroutine, Iterator

import pytest

from inferbus_cli.platform.overview import SUPERVISOR
from inferbus_cli.platform.plan import NATS
from inferbus_contracts.catalog import Stream
from inferbus_contracts.events.metrics import MetricsSampled
from inferbus_contracts.events.scaling import ScalingDecided
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.services import Service
from inferbus_contracts.subjects import ROOT
from inferbus_contracts.topology import inbox_stream
from inferbus_shared.bus.bus import Bus
from inferbus_shared.bus.follow import Follower, Start
from tests.scenario.fleet import QUICK, STEADY, STEADY_REPLICAS, fleet_manifests, fleet_on
from tests.support.eventually import eventually
from tests.support.ledger import record_of
from tests.support.load import Load, running_load
from tests.support.platform import Platform, running_platform

pytestmark = pytest.mark.slow

ROUTERS = ("router-0", "router-1")
PROCESSES = (
    NATS,
    Service.SPEC_WATCHER,
    Service.WORKLOAD_RECONCILER,
    Service.NODE_AGENT,
    Service.ROUTER_CONFIG_PUBLISHER,
    *ROUTERS,
    Service.METRICS_COLLECTOR,
    Service.AUTOSCALER,
    Service.OPTIMIZER,
    Service.MODEL_DOWNLOADER,
    Service.CONSOLE,
)


ON_THE_WAY_OF_A_DECISION = (
    NATS,
    Service.AUTOSCALER,
    Service.WORKLOAD_RECONCILER,
    Service.SPEC_WATCHER,
)
ON_THE_WAY_TO_A_DECISION = (NATS, Service.AUTOSCALER, Service.OPTIMIZER)


@pytest.fixture(scope="module")
def platform() -> Iterator[Platform]:
    with running_platform("--startup", "0", environment=QUICK) as platform:
        platform.apply(*fleet_manifests())
        asyncio.run(_serving(platform))
        yield platform


async def _serving(platform: Platform) -> None:
    async with fleet_on(platform) as fleet:
        await fleet.serving()


def test_every_process_is_killed(platform: Platform) -> None:
    assert set(PROCESSES) == platform.processes().keys() - {SUPERVISOR}


async def at_once(_: Bus) -> None:
    """In the middle of nothing in particular."""


async def at_a_sample(bus: Bus) -> None:
    """While deciders look at a sample that asks for another number."""
    await anext(bus.events(bus.follow(MetricsSampled.event_type, Start.new())))


async def at_a_decision(bus: Bus) -> None:
    """Between a decision, its way to the pods, and the acknowledgement of what led to it."""
    await anext(bus.events(bus.follow(ScalingDecided.event_type, Start.new())))


@pytest.mark.parametrize(
    ("name", "moment"),
    [
        *((name, at_once) for name in PROCESSES),
        *((name, at_a_decision) for name in ON_THE_WAY_OF_A_DECISION),
        *((name, at_a_sample) for name in ON_THE_WAY_TO_A_DECISION),
    ],
)
async def test_a_killed_process_comes_back_and_nothing_is_lost_or_doubled(
    platform: Platform, name: str, moment: Callable[[Bus], Coroutine[None, None, None]]
) -> None:
    async with (
        fleet_on(platform) as fleet,
        platform.bus() as bus,
        running_load(platform.router) as load,
    ):
        now, then = (1, 3) if await fleet.replicas() == 1 else (3, 1)
        fleet.load(load, now)
        await fleet.scaled(now)
        before = await fleet.adds_up()
        steady = await fleet.engines_of(STEADY)
        assert len(steady) == STEADY_REPLICAS

        await answers(load, 10)
        killed = platform.pid(name)
        waiting = asyncio.create_task(moment(bus))
        fleet.load(load, then)
        await waiting
        os.kill(killed, signal.SIGKILL)
        await fleet.back(name, killed)
        await fleet.scaled(then)
        await answers(load, 10)
        after = await fleet.adds_up()

        assert load.counts.refused == 0
        assert load.counts.broken <= (fleet.clients if name in ROUTERS else 0), load.counts
        assert load.counts.statuses.keys() == {200}, load.counts
        assert len(after.decisions) > len(before.decisions)
        deciders = {record_of(decision).decider for decision in after.decisions}
        assert deciders == {Service.AUTOSCALER, Service.OPTIMIZER}
        assert await fleet.engines_of(STEADY) == steady
        await eventually(fleet.every_pod_once, 30)


async def test_what_a_killed_event_log_acknowledged_is_there_once_and_in_order(
    platform: Platform,
) -> None:
    nobody = ObjectKey("ModelServing", "default", "nobody")
    acknowledged: list[str] = []
    enough = asyncio.Event()
    async with platform.bus(Service.METRICS_COLLECTOR) as bus, platform.bus() as reader:

        async def write() -> None:
            for number in itertools.takewhile(lambda _: not enough.is_set(), itertools.count()):
                sample = MetricsSampled(policy="", taken_at_ms=number, window_ms=0, targets=[])
                event = bus.event(sample, nobody, id=f"{platform.router_port}-{number}")
                await bus.publish(event)
                acknowledged.append(event.headers["ce-id"])

        writing = asyncio.create_task(write())
        await eventually(lambda: len(acknowledged) > 50)
        platform.kill(NATS)
        killed_at = len(acknowledged)
        await eventually(lambda: len(acknowledged) > killed_at + 50, 30)
        enough.set()
        await writing

        assert await _stored(reader, Stream.TELEMETRY, ROOT, nobody) == acknowledged
        inbox = inbox_stream(Service.AUTOSCALER)
        root = f"inbox.{Service.AUTOSCALER}.*"
        await eventually(lambda: _holds(reader, inbox, root, nobody, acknowledged))


async def _holds(bus: Bus, stream: str, root: str, key: ObjectKey, ids: list[str]) -> bool:
    return await _stored(bus, stream, root, key) == ids


async def _stored(bus: Bus, stream: str, root: str, key: ObjectKey) -> list[str]:
    """The ids of the samples about one key in a stream, in order."""
    filter_ = f"{root}.{MetricsSampled.event_type}.*.*.{key.name}"
    follower = Follower(bus.connection, stream, filter_, Start.everything())
    return [message.headers["ce-id"] async for message in follower.snapshot()]


async def answers(load: Load, number: int) -> None:
    """Wait for so many more good answers."""
    wanted = load.counts.good + number
    await eventually(lambda: load.counts.good >= wanted, 30, lambda: f"answers: {load.counts}")
