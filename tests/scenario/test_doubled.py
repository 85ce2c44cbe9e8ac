"""A platform with every service doubled, under load: nobody does what the other did already.

Model downloaders are doubled too, though two of one node only stand in for each other.
"""

import re
import urllib.request
from collections import Counter
from collections.abc import Iterable

import pytest

from inferbus_cli.platform.plan import SERVICES, SINGLE
from inferbus_contracts.api.console import (
    ConsoleQuery,
    InventoryReply,
    InventoryRequest,
    console_subject,
)
from inferbus_contracts.catalog import Stream
from inferbus_contracts.events.demand import DemandObserved
from inferbus_contracts.events.spec import SpecChanged
from inferbus_contracts.services import Service
from inferbus_contracts.subjects import ROOT
from inferbus_shared.bus.bus import Bus
from inferbus_shared.bus.follow import Follower, Start
from tests.scenario.fleet import QUICK, fleet_manifests, fleet_on
from tests.support.eventually import eventually
from tests.support.ledger import Event
from tests.support.load import running_load
from tests.support.platform import Platform, model_manifests, running_platform

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

FAIR_SHARE = 0.3
QUESTIONS = 60
IDLE = [f"idle-{number}" for number in range(6)]
"""More workloads with policies, so that there is enough to share."""
DOUBLED = [service for service in SERVICES if service not in SINGLE]


async def test_two_of_every_service_share_the_work_and_double_nothing() -> None:
    scales = [word for service in DOUBLED for word in ("--scale", f"{service}=2")]
    with running_platform("--startup", "0", *scales, environment=QUICK) as platform:
        assert len(platform.processes()) == 2 + 2 * len(DOUBLED) + len(SINGLE)
        idle = [one for model in IDLE for one in model_manifests(model, scaling=(1, 2))]
        platform.apply(*fleet_manifests(), *idle)
        async with (
            fleet_on(platform) as fleet,
            platform.bus() as bus,
            running_load(platform.router) as load,
        ):
            await fleet.serving()
            for replicas in (3, 1, 3):
                fleet.load(load, replicas)
                await fleet.scaled(replicas)
            await eventually(fleet.every_pod_once, 30)
            await fleet.adds_up()
            assert load.counts.bad == 0, load.counts

            questions = await asked(bus, platform)
            samples = await events(bus, Stream.TELEMETRY, "metrics.sampled")
            requests = await events(bus, Stream.DEMAND, "demand.observed")
            observed = await events(bus, Stream.FACTS, "workload.observed")
            changes = await events(bus, Stream.FACTS, "spec.changed")
    work = {
        Service.METRICS_COLLECTOR: Counter(one.envelope.source for one in samples),
        Service.WORKLOAD_RECONCILER: Counter(sources(observed).values()),
        Service.ROUTER: arrivals(requests),
        Service.CONSOLE: questions,
    }
    for service, shares in work.items():
        assert len(shares) == 2, (service, shares)
        assert min(shares.values()) >= FAIR_SHARE * shares.total(), (service, shares)
    told = Counter((one.key, *version(one)) for one in changes)
    assert max(told.values()) == 1, told.most_common(3)


def sources(observations: Iterable[Event]) -> dict[str, str]:
    """Who observed each key last."""
    return {str(one.key): one.envelope.source for one in observations}


def version(change: Event) -> tuple[str, int, str]:
    assert isinstance(change.data, SpecChanged)
    return change.data.uid, change.data.generation, change.data.digest


async def asked(bus: Bus, platform: Platform) -> Counter[str]:
    """How many of a lot of questions each console has answered."""
    for _ in range(QUESTIONS):
        await bus.ask(console_subject(ConsoleQuery.STATUS), InventoryRequest(), InventoryReply)
    rows = platform.processes()
    return Counter({name: handled(rows[name].health_url) for name in ("console-0", "console-1")})


def handled(health_url: str) -> int:
    """How many events and questions a process says it has handled."""
    with urllib.request.urlopen(f"{health_url}/metrics", timeout=5) as answer:
        page = answer.read().decode()
    values = re.findall(r"^inferbus_\w+_events_total{.*} (.+)$", page, re.MULTILINE)
    return sum(int(float(value)) for value in values)


def arrivals(requests: Iterable[Event]) -> Counter[str]:
    """How many requests each router let in."""
    counts: Counter[str] = Counter()
    for one in requests:
        assert isinstance(one.data, DemandObserved)
        counts[one.envelope.source] += sum(model.arrivals for model in one.data.models)
    return counts


async def events(bus: Bus, stream: Stream, event_type: str) -> list[Event]:
    """Everything of a type that stands in the log."""
    follower = Follower(bus.connection, stream, f"{ROOT}.{event_type}.>", Start.everything())
    return [await bus.read(message) async for message in follower.snapshot()]
