"""From a sample that must change a decision to the decision on the bus, at twenty targets.

Every target's metric is changed after each of its samples, so that every sample must change the
decision. Decisions are advice here: what is measured is the way to them, not pods that start. The
collector samples as often as it does by default.
"""

import asyncio
import time
from typing import Any

from inferbus_contracts.events.metrics import MetricsSampled
from inferbus_contracts.events.scaling import ScalingDecided
from inferbus_contracts.resources.annotations import ApplyMode
from inferbus_shared.bus.bus import Bus
from inferbus_shared.bus.follow import Start
from inferbus_shared.clock import real_now_ms
from tests.bench.configuration import configuration
from tests.bench.figure import Detail, Figure, quantile
from tests.bench.fleet import advised_model, engine_urls, workload_key
from tests.bench.held_requests import HeldRequests, held_requests
from tests.bench.reactions import Delays, Reactions, Sample
from tests.support.platform import running_platform

LIMIT_MS = 250.0
TARGETS = 20
WARM_SECONDS = 6.0
"""The first sample of each target has nothing that changed."""
MEASURE_SECONDS = 50.0
HIGH, LOW = 6, 0
"""Running requests of a target; two of them fill a replica."""


async def measure() -> list[Figure]:
    """The delays of all changes within the time, on one platform."""
    models = [f"model-{number:02}" for number in range(TARGETS)]
    with running_platform("--startup", "0") as platform:
        platform.apply(*(document for model in models for document in advised_model(model)))
        async with platform.bus() as bus, held_requests() as held:
            engines = await engine_urls(bus, models)
            watch = _Watch(bus, held, engines)
            reactions = await watch.run()
        load = configuration(platform.directory, replicas=TARGETS, policies=TARGETS)
    return _figures(reactions, load)


class _Watch:
    """Changes a target's metric whenever it was sampled, and notes what the bus says."""

    def __init__(self, bus: Bus, held: HeldRequests, engines: dict[str, str]) -> None:
        self._bus = bus
        self._held = held
        self._engines = {workload_key(model): (url, model) for model, url in engines.items()}
        self._high: dict[Any, bool] = {}
        self._changed_ms: dict[Any, int] = {}
        self._reactions = Reactions()
        self._begin = time.monotonic() + WARM_SECONDS

    async def run(self) -> Reactions:
        work = [asyncio.create_task(self._samples()), asyncio.create_task(self._decisions())]
        await asyncio.wait(work, timeout=WARM_SECONDS + MEASURE_SECONDS)
        for task in work:
            task.cancel()
        for result in await asyncio.gather(*work, return_exceptions=True):
            if isinstance(result, Exception):
                raise result
        return self._reactions

    async def _samples(self) -> None:
        async for message in self._bus.follow("metrics.sampled", Start.new()).messages():
            event = await self._bus.read(message)
            assert isinstance(event.data, MetricsSampled)
            changed_ms = self._changed_ms.get(event.key)
            if changed_ms is not None and time.monotonic() >= self._begin:
                self._reactions.samples[event.id] = Sample(
                    changed_ms=changed_ms,
                    taken_ms=event.data.taken_at_ms,
                    stored_ms=message.stamp_ms,
                )
            self._change(event.key)

    async def _decisions(self) -> None:
        before: dict[Any, int] = {}
        async for message in self._bus.follow("scaling.decided", Start.new()).messages():
            event = await self._bus.read(message)
            assert isinstance(event.data, ScalingDecided)
            if before.get(event.key) != event.data.desired:
                self._reactions.decided_ms[event.envelope.causation_id] = message.stamp_ms
            before[event.key] = event.data.desired

    def _change(self, key: Any) -> None:
        high = not self._high.get(key, False)
        self._high[key] = high
        self._held.hold(*self._engines[key], HIGH if high else LOW)
        self._changed_ms[key] = real_now_ms()


def _figures(reactions: Reactions, load: dict[str, Detail]) -> list[Figure]:
    delays = reactions.delays()
    return [
        Figure(
            name="decision-latency",
            value=quantile(delays.from_taken, 0.99),
            unit="ms at p99",
            limit=LIMIT_MS,
            meaning="from the moment the collector has read a target's changed metrics to the "
            "decision stored on the bus (the server's own stamp)",
            configuration=load | {"targets": TARGETS, "mode": ApplyMode.ADVISE.value},
            detail=_spread(delays, reactions),
        ),
        Figure(
            name="metric-to-decision",
            value=quantile(delays.from_changed, 0.5),
            unit="ms at p50",
            meaning="from the change of the metric in the engine, made right after a sample, to "
            "the decision stored on the bus: about a whole sample interval and the way after it",
            configuration=load | {"targets": TARGETS, "mode": ApplyMode.ADVISE.value},
            detail={"p99_ms": quantile(delays.from_changed, 0.99)},
        ),
    ]


def _spread(delays: Delays, reactions: Reactions) -> dict[str, Detail]:
    return {
        "decisions": len(delays.from_taken),
        "samples_without_change": reactions.unanswered,
        "p50_ms": quantile(delays.from_taken, 0.5),
        "most_ms": max(delays.from_taken),
        "from_stored_sample_p50_ms": quantile(delays.from_stored, 0.5),
        "from_stored_sample_p99_ms": quantile(delays.from_stored, 0.99),
    }
