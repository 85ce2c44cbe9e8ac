"""From a request for a model at zero replicas to the decision that wakes it.

A whole platform with many models at zero, each under an objective alone, and its real router. One
after the other is asked for: the router holds the request and says so, the autoscaler decides.
These decisions are advice, so that the machine starts no pod while others are measured; one more
model is really woken, and the request that was held for it must be answered.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

from inferbus_contracts.events.demand import DemandPending
from inferbus_contracts.events.scaling import ScalingDecided
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.resources.annotations import ApplyMode
from inferbus_shared.bus.bus import Bus
from inferbus_shared.bus.follow import Start
from inferbus_shared.bus.messages import Delivered
from tests.bench.configuration import configuration
from tests.bench.figure import Detail, Figure, quantile
from tests.bench.fleet import objective_model, workload_key
from tests.bench.held_requests import HeldRequests, held_requests
from tests.support.eventually import eventually
from tests.support.platform import Platform, running_platform

LIMIT_MS = 100.0
TARGETS = 100
OBJECTIVE = "wait=2s@99.5%"
BOUNDS = (0, 4)
SERVED = "served"
"""The model that is really woken."""
READY_SECONDS = 90.0
MOST_SECONDS = 20.0
"""For one wake-up."""


async def measure() -> list[Figure]:
    """Every wake-up by the stamps that the server gave; and one that is served."""
    models = [f"asleep-{number:02}" for number in range(TARGETS)]
    with running_platform("--startup", "0") as platform:
        platform.apply(*_asleep(models))
        async with platform.bus() as bus, held_requests() as held:
            await eventually(lambda: _sampled(bus, [*models, SERVED]), READY_SECONDS)
            delays = await _wake(bus, held, platform.router, models)
        served_seconds = _serve(platform)
        load = configuration(platform.directory, policies=TARGETS + 1)
    return [_figure(delays, served_seconds, load)]


def _asleep(models: Sequence[str]) -> Iterator[dict[str, Any]]:
    for model in models:
        yield from objective_model(model, OBJECTIVE, bounds=BOUNDS, mode=ApplyMode.ADVISE)
    yield from objective_model(SERVED, OBJECTIVE, bounds=BOUNDS)


async def _sampled(bus: Bus, models: Sequence[str]) -> bool:
    """Whether the autoscaler knows all of them: it has said of each that it may rest."""
    for model in models:
        if await bus.last(ScalingDecided.event_type, workload_key(model)) is None:
            return False
    return True


async def _wake(bus: Bus, held: HeldRequests, router: str, models: Sequence[str]) -> list[int]:
    """Milliseconds from `demand.pending` to the decision, of each model in turn."""
    pending = bus.follow(DemandPending.event_type, Start.everything()).messages()
    decided = bus.follow(ScalingDecided.event_type, Start.everything()).messages()
    delays = []
    for model in models:
        async with asyncio.timeout(MOST_SECONDS):
            held.hold(router, model, 1)
            key = workload_key(model)
            told = await _first(bus, pending, key)
            answer = await _first(bus, decided, key)
            held.hold(router, model, 0)
        delays.append(answer.stamp_ms - told.stamp_ms)
    return delays


async def _first(bus: Bus, messages: AsyncIterator[Delivered], key: ObjectKey) -> Delivered:
    """The next message that asks for a replica of a target."""
    async for message in messages:
        event = await bus.read(message)
        asks = not isinstance(event.data, ScalingDecided) or event.data.desired > 0
        if event.key == key and asks:
            return message
    raise AssertionError(f"the log ended before {key} was woken")


def _serve(platform: Platform) -> float:
    """Seconds until a request that finds no replica is answered."""
    began = time.monotonic()
    answer = platform.complete(SERVED)
    assert answer.status == 200, f"a held request ended with {answer.status}: {answer.body}"
    return time.monotonic() - began


def _figure(delays: Sequence[int], served_seconds: float, load: dict[str, Detail]) -> Figure:
    return Figure(
        name="wake-up",
        value=quantile(delays, 0.99),
        unit="ms at p99",
        limit=LIMIT_MS,
        meaning="a request for a model at zero replicas: from the router's `demand.pending` to the "
        "decision for a replica, both as the bus stamped them",
        configuration=load
        | {"targets": TARGETS, "mode": ApplyMode.ADVISE.value, "objective": OBJECTIVE},
        detail={
            "wake_ups": len(delays),
            "p50_ms": quantile(delays, 0.5),
            "most_ms": max(delays),
            "seconds_until_a_held_request_is_answered": round(served_seconds, 2),
        },
    )
