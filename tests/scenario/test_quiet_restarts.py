"""Restarts on a quiet system: nobody says anything that was said before.

Facts are levels, and an observer is silent while what it sees is what the log says last. Invariant
of these scenarios: the world is the same before and after, so pods are there throughout, or there
are none; `inferbus down` ends pods, and telling that would be right.
"""

import base64
import signal
from functools import partial

import pytest

from inferbus_cli.platform.overview import SUPERVISOR
from inferbus_cli.platform.plan import NATS
from inferbus_contracts.catalog import Stream
from inferbus_contracts.events.metrics import MetricsAssessed
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.services import Service
from inferbus_contracts.topology import inbox_stream
from inferbus_shared.bus.bus import Bus
from inferbus_shared.bus.jetstream import api
from inferbus_shared.processes.identity import ProcessIdentity, identify, send_signal
from tests.scenario.fleet import PATIENCE_SECONDS, fleet_manifests, fleet_on
from tests.support.eventually import eventually
from tests.support.platform import Platform, engines, model_manifests, running_platform

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

RESTARTS = 10
QUIET = (Stream.FACTS, Stream.DECISIONS, Stream.ROUTES)
SAMPLES = 4
"""Samples after which every decider has had its say."""
SETTINGS = {
    "INFERBUS_METRICS_COLLECTOR_INTERVAL_SECONDS": "0.3",
    "INFERBUS_AUTOSCALER_REPEAT_SECONDS": "3600",
}
"""Many samples; and no decision is said again because it is old."""


async def test_ten_times_down_and_up_without_pods_add_no_event() -> None:
    with running_platform("--startup", "0", environment=SETTINGS) as platform:
        platform.apply(*model_manifests("chat", replicas=0, scaling=(0, 3)))
        await assessed(platform, "chat")
        before = await said(platform)
        assert min(before.values()) > 0
        for _ in range(RESTARTS):
            platform.down()
            platform.up()
            assert await news(platform, before) == []


async def test_ten_restarts_of_every_service_under_living_pods_add_no_event() -> None:
    with running_platform("--startup", "0", environment=SETTINGS) as platform:
        platform.apply(*fleet_manifests())
        async with fleet_on(platform) as fleet:
            await fleet.serving()
        await assessed(platform, "chat", "mix")
        before, containers = await said(platform), engines(platform)
        for number in range(RESTARTS):
            await restart_everything(platform, event_log=number % 5 == 0)
            assert await news(platform, before) == []
        assert engines(platform) == containers


async def restart_everything(platform: Platform, *, event_log: bool) -> None:
    """End the supervisor, every service and maybe the event log, and begin anew."""
    platform.kill(SUPERVISOR)
    running = services(platform)
    for identity in running.values():
        send_signal(identity, signal.SIGTERM)
    await eventually(lambda: not services(platform), PATIENCE_SECONDS)
    platform.up()
    assert services(platform).keys() == running.keys()
    if event_log:
        killed = platform.kill(NATS)
        await eventually(
            lambda: platform.processes()[NATS].pid not in (None, killed), PATIENCE_SECONDS
        )


def services(platform: Platform) -> dict[str, ProcessIdentity]:
    """The living services by name."""
    rows = platform.processes().values()
    living = {row.name: identify(row.pid) for row in rows if row.pid is not None}
    names = living.keys() - {SUPERVISOR, NATS}
    return {name: one for name in names if (one := living[name]) is not None}


async def assessed(platform: Platform, *bindings: str) -> None:
    """Wait for what takes several whole rounds: the first word about each policy's samples."""
    async with platform.bus(Service.PROVISIONER) as bus:
        for name in bindings:
            key = ObjectKey("AutoscalingPolicyBinding", "default", name)
            await eventually(partial(bus.last, MetricsAssessed.event_type, key), PATIENCE_SECONDS)


async def said(platform: Platform) -> dict[str, int]:
    """The last sequence of each stream, once a few samples were heard in silence."""
    async with platform.bus(Service.PROVISIONER) as bus:

        async def silence() -> dict[str, int] | None:
            before = await last_sequences(bus)
            await hear_samples(bus)
            return before if await last_sequences(bus) == before else None

        return await eventually(silence, PATIENCE_SECONDS) or {}


async def news(platform: Platform, before: dict[str, int]) -> list[str]:
    """What was said since `before`, once there is silence."""
    after = await said(platform)
    async with platform.bus(Service.PROVISIONER) as bus:
        return [
            await told(bus, stream, number)
            for stream in QUIET
            for number in range(before[stream] + 1, after[stream] + 1)
        ]


async def told(bus: Bus, stream: str, sequence: int) -> str:
    """A message in words, for the failure's message."""
    answer = await api(bus.connection, f"STREAM.MSG.GET.{stream}", {"seq": sequence})
    message = answer["message"]
    return f"{message['subject']}: {base64.b64decode(message.get('data', ''))!r}"


async def last_sequences(bus: Bus) -> dict[str, int]:
    return {stream.value: await last_sequence(bus, stream) for stream in QUIET}


async def last_sequence(bus: Bus, stream: str) -> int:
    """Raises `ProblemsError` while the event log is away."""
    info = await api(bus.connection, f"STREAM.INFO.{stream}")
    return int(info["state"]["last_seq"])


async def hear_samples(bus: Bus) -> None:
    """Wait until the autoscaler has dealt with some more samples."""
    inbox = inbox_stream(Service.AUTOSCALER)
    wanted = await last_sequence(bus, inbox) + SAMPLES

    async def heard() -> bool:
        durables = (await api(bus.connection, f"CONSUMER.LIST.{inbox}"))["consumers"]
        waiting = sum(one["num_pending"] + one["num_ack_pending"] for one in durables)
        return not waiting and await last_sequence(bus, inbox) >= wanted

    await eventually(heard, PATIENCE_SECONDS)
