"""`kill -9` of any one process while load runs: it comes back, and nothing is lost or doubled."""

import asyncio
from collections.abc import Iterator

import pytest

from inferbus_cli.platform.plan import NATS
from inferbus_contracts.services import Service
from tests.scenario.fleet import (
    HIGH,
    LOW,
    QUICK,
    STEADY,
    STEADY_REPLICAS,
    adds_up,
    back,
    decided_by,
    engines,
    fleet_manifests,
    pods,
    pods_of,
    scaled,
    serving,
    set_load,
    until,
)
from tests.support.load import running_load
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


@pytest.fixture(scope="module")
def platform() -> Iterator[Platform]:
    with running_platform("--startup", "0", environment=QUICK) as platform:
        platform.apply(*fleet_manifests())
        asyncio.run(serving(platform))
        yield platform


def test_every_process_is_killed(platform: Platform) -> None:
    assert set(PROCESSES) == platform.processes().keys() - {"supervisor"}


@pytest.mark.parametrize("name", PROCESSES)
async def test_a_killed_process_comes_back_and_nobody_notices(
    platform: Platform, name: str
) -> None:
    async with running_load(platform.router) as load:
        set_load(load, LOW)
        await scaled(platform, 1)
        steady = pods_of(platform, STEADY)
        assert len(steady) == STEADY_REPLICAS
        before, answered = await adds_up(platform), load.counts.good

        killed = platform.kill(name)
        set_load(load, HIGH)
        await back(platform, name, killed)
        await scaled(platform, 3)
        ledger = await adds_up(platform)

        assert load.counts.refused == 0
        assert name in ROUTERS or load.counts.bad == 0, load.counts
        assert load.counts.good > answered
        assert len(ledger.decisions) > len(before.decisions)
        assert decided_by(ledger) == {Service.AUTOSCALER, Service.OPTIMIZER}
    assert pods_of(platform, STEADY) == steady
    await until(lambda: _no_pod_is_doubled(platform), "every pod has one process")


def _no_pod_is_doubled(platform: Platform) -> bool:
    """Every pod has one process, and every engine process has a pod."""
    running = engines(platform)
    one_each = all(len(processes) == 1 for processes in running.values())
    return one_each and running.keys() == {pod["metadata"]["uid"] for pod in pods(platform)}
