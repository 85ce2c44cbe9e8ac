"""Around a handler: what led to an event, what is counted, and what a stop leaves behind."""

import asyncio
import logging
from dataclasses import replace

import pytest
from prometheus_client import generate_latest

from inferbus_contracts.base import EventData
from inferbus_contracts.envelope import Envelope
from inferbus_contracts.events.metrics import MetricsSampled
from inferbus_contracts.events.scaling import (
    ApplyOutcome,
    DecisionRecord,
    ScalingApplied,
    ScalingDecided,
)
from inferbus_contracts.events.workload import WorkloadObserved
from inferbus_contracts.services import Service
from inferbus_shared.bus.bus import Bus
from inferbus_shared.bus.messages import Received
from inferbus_shared.bus.observer import Observer
from inferbus_shared.bus.service import Runtime
from inferbus_shared.bus.store import store
from tests.support.eventually import eventually
from tests.support.handling import Settings, consuming, publish_samples, sample_number, target
from tests.support.nats import NatsServer

FIRST = "sample-0"


def decided() -> ScalingDecided:
    record = DecisionRecord(decider="d", version="1", policy="p", policy_digest="d", input={})
    return ScalingDecided(current=1, desired=2, target_uid="u", target_generation=1, record=record)


async def envelope(bus: Bus, event_type: str) -> Envelope:
    """Of the last event of a type."""

    async def last() -> Envelope | None:
        event = await bus.last(event_type, target(0))
        return event.envelope if event else None

    found = await eventually(last)
    assert found is not None
    return found


async def test_whatever_follows_from_an_event_names_the_first_of_its_chain(
    nats_server: NatsServer,
) -> None:
    """A sample, the decision on it, and what the reconciler stores and observes in turn."""
    async with (
        nats_server.bus(Service.METRICS_COLLECTOR) as collector,
        nats_server.bus(Service.AUTOSCALER) as autoscaler,
        nats_server.bus(Service.WORKLOAD_RECONCILER) as reconciler,
        nats_server.bus(Service.PROVISIONER) as everything,
    ):
        observer = Observer(reconciler, "workload.observed")

        async def decide(event: Received[EventData]) -> None:
            if isinstance(event.data, MetricsSampled):
                await autoscaler.publish(autoscaler.event(decided(), target(0), cause=event))

        async def apply(event: Received[EventData]) -> None:
            outcome = ScalingApplied(
                decision_id=event.id,
                outcome=ApplyOutcome.APPLIED,
                replicas=2,
                generation=2,
                uid="u",
            )
            await reconciler.publish(reconciler.event(outcome, target(0), cause=event))
            fact = WorkloadObserved(uid="u", generation=2)
            await observer.observe(target(0), "u", fact, cause=event)

        async with consuming(autoscaler, decide), consuming(reconciler, apply) as runtime:
            runtime.background(observer.run(), "observer")
            await publish_samples(collector, 1)
            decision = await envelope(everything, "scaling.decided")
            consequences = [
                await envelope(everything, name)
                for name in ("scaling.applied", "workload.observed")
            ]
        sample = await envelope(everything, "metrics.sampled")
    assert (sample.correlation_id, sample.causation_id) == ("", ""), "nothing led to it"
    assert (decision.correlation_id, decision.causation_id) == (FIRST, FIRST)
    for item in consequences:
        assert (item.correlation_id, item.causation_id) == (FIRST, decision.id)


def series(runtime: Runtime[Settings]) -> set[str]:
    """The names and labels on the metrics page."""
    lines = generate_latest(runtime.registry).decode().splitlines()
    return {line.rpartition(" ")[0] for line in lines if not line.startswith("#")}


def handled(runtime: Runtime[Settings]) -> float:
    """How many events ended, however."""
    return sum(
        sample.value
        for metric in runtime.registry.collect()
        for sample in metric.samples
        if sample.name.endswith("_events_total")
    )


async def test_neither_keys_nor_rubbish_add_metrics(nats_server: NatsServer) -> None:
    async with (
        nats_server.bus(Service.METRICS_COLLECTOR) as writer,
        nats_server.bus(Service.AUTOSCALER) as bus,
        consuming(bus, lambda event: None) as runtime,
    ):

        async def rubbish(number: int) -> None:
            data = MetricsSampled(policy="p", taken_at_ms=0, window_ms=0, targets=[])
            message = writer.event(data, target(number), id=f"rubbish-{number}")
            foreign = {"ce-type": f"dev.inferbus.rubbish.n{number}.v1"}
            await store(writer.connection, replace(message, headers=message.headers | foreign))

        await publish_samples(writer, 1)
        await rubbish(0)
        await eventually(lambda: handled(runtime) == 2)
        before = series(runtime)
        await publish_samples(writer, 50, keys=50, first=50)
        for number in range(1, 50):
            await rubbish(number)
        await eventually(lambda: handled(runtime) == 101)
        assert series(runtime) == before


async def test_stopping_waits_for_handlers_and_leaves_nothing_half_done(
    nats_server: NatsServer, caplog: pytest.LogCaptureFixture
) -> None:
    begun: list[int] = []
    ended: list[int] = []
    release = asyncio.Event()

    async def handle(event: Received[EventData]) -> None:
        begun.append(sample_number(event))
        await release.wait()
        ended.append(sample_number(event))

    async with (
        nats_server.bus(Service.METRICS_COLLECTOR) as writer,
        nats_server.bus(Service.AUTOSCALER, "a") as first,
        nats_server.bus(Service.AUTOSCALER, "b") as second,
    ):
        async with consuming(first, handle) as runtime:
            await publish_samples(writer, 32, keys=32)
            await eventually(lambda: len(begun) >= 4)
            runtime.stop()
            asyncio.get_running_loop().call_soon(release.set)
        assert sorted(ended) == sorted(begun)
        async with consuming(second, handle):
            await eventually(lambda: len(ended) >= 32)
    assert sorted(ended) == list(range(32)), "none lost, none twice"
    assert not [item for item in caplog.records if item.levelno >= logging.ERROR]
