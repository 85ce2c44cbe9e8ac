"""How many decisions a second one autoscaler makes through the bus, every one of them on disk.

A server of its own with the project's configuration, and a process of the service: nothing else
takes part, so that the figure is that of the way from a sample to its decision. Every sample
changes its target's decision.
"""

import asyncio
import time
from collections.abc import Iterable, Sequence

from inferbus_contracts.events.scaling import ScalingDecided
from inferbus_contracts.events.spec import SpecChanged
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.resources.kinds import key_of
from inferbus_contracts.services import Service
from inferbus_shared.bus.bus import Bus
from inferbus_shared.bus.follow import Start
from tests.bench.figure import Figure
from tests.bench.fleet import advised_model
from tests.bench.processes import cpu_seconds
from tests.bench.synthetic_samples import publish_rounds
from tests.support.instances import running_instances, until_waiting
from tests.support.nats import NatsServer, running_server

LEAST = 300.0
TARGETS = 20
WARM_ROUNDS = 4
"""Even, as the rounds end with the value that they don't begin with."""
ROUNDS = 76
MOST_SECONDS = 120.0
"""For all decisions; a measurement that can't end would tell nothing."""


async def measure() -> list[Figure]:
    """The rate, and what a decision costs the two processes it takes."""
    models = [f"model-{number:02}" for number in range(TARGETS)]
    with running_server() as server:
        await server.provision()
        await _tell_specs(server, models)
        with running_instances(server, Service.AUTOSCALER, ["one"]) as (pid,):
            await until_waiting(server, Service.AUTOSCALER, 1)
            await _decide(server, models, "warm", WARM_ROUNDS)
            spent = {"autoscaler": -cpu_seconds(pid), "nats": -cpu_seconds(server.pid)}
            seconds = await _decide(server, models, "timed", ROUNDS)
            spent["autoscaler"] += cpu_seconds(pid)
            spent["nats"] += cpu_seconds(server.pid)
    decisions = TARGETS * ROUNDS
    return [
        Figure(
            name="decision-rate",
            value=round(decisions / seconds, 1),
            unit="decisions/s",
            limit=LEAST,
            more_is_better=True,
            meaning="samples of all targets published at once, those of one target one after the "
            "other, until the last decision stands on the bus: every sample changes its target's "
            "decision, and every message is on disk before it is acknowledged",
            configuration={
                "autoscalers": 1,
                "policies": TARGETS,
                "mode": "advise",
                "sync_interval": "always",
            },
            detail={
                "decisions": decisions,
                **{
                    f"{name}_cpu_ms_per_decision": round(cpu / decisions * 1000, 2)
                    for name, cpu in spent.items()
                },
            },
        )
    ]


async def _tell_specs(server: NatsServer, models: Iterable[str]) -> None:
    async with server.bus(Service.SPEC_WATCHER) as bus:
        for document in (one for model in models for one in advised_model(model)):
            key: ObjectKey = key_of(document)
            uid = str(key)
            spec = SpecChanged(uid=uid, generation=1, digest=uid, object=document)
            await bus.publish(bus.event(spec, key, id=uid))


async def _decide(server: NatsServer, models: Sequence[str], name: str, rounds: int) -> float:
    """Seconds from the first sample to the decision about the last one."""
    async with (
        server.bus(Service.METRICS_COLLECTOR) as collector,
        server.bus(Service.CLI) as reader,
    ):
        began = time.monotonic()
        async with asyncio.timeout(MOST_SECONDS):
            samples = await publish_rounds(collector, models, rounds, name)
            await until_decided(reader, samples)
        return time.monotonic() - began


async def until_decided(bus: Bus, samples: Iterable[str]) -> None:
    """Read the log from its beginning until a decision about each sample stands in it."""
    waiting = set(samples)
    follower = bus.follow(ScalingDecided.event_type, Start.everything())
    async for message in follower.messages():
        waiting.discard(message.headers["ce-causationid"])
        if not waiting:
            return
