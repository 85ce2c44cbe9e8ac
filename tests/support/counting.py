"""A decider of the tests' own: it counts what its inbox brings, and says each number it reaches."""

import contextlib
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from prometheus_client import CollectorRegistry

from inferbus_contracts.base import EventData
from inferbus_contracts.catalog import Stream
from inferbus_contracts.deciding import ClearTimer, SetTimer, check_schema
from inferbus_contracts.events.metrics import MetricsSampled
from inferbus_contracts.events.scaling import DecisionRecord, ScalingDecided
from inferbus_contracts.events.state import StateStored
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.services import Service
from inferbus_contracts.subjects import ROOT
from inferbus_contracts.topology import inbox_stream
from inferbus_shared.bus.bus import Bus
from inferbus_shared.bus.decider import Decider, Verdict
from inferbus_shared.bus.fate import Again, fate_of
from inferbus_shared.bus.follow import Follower, Start
from inferbus_shared.bus.messages import Delivered, Received, decode
from tests.support.eventually import eventually
from tests.support.nats import NatsServer

KEY = ObjectKey("ModelServing", "default", "sample.dotted")
INPUTS = ("sample-1", "sample-2", "sample-3")
SCHEMA = 2
HOUR_MS = 3_600_000

Timers = Callable[[Received[EventData]], Sequence[SetTimer | ClearTimer]]

_NO_MESSAGE: Any = None


@dataclass(frozen=True)
class Count:
    """The effect that says how far the count has come."""

    key: str
    data: ScalingDecided


def no_timers(_: Received[EventData]) -> Sequence[SetTimer | ClearTimer]:
    """The timers of a decider that has none."""
    return ()


def in_an_hour(event: Received[EventData]) -> Sequence[SetTimer]:
    """The timers of a decider that wakes the key an hour after its last input."""
    return (SetTimer(event.time_ms + HOUR_MS, "look again"),)


def counting(
    bus: Bus,
    timers: Timers = no_timers,
    schema: int = SCHEMA,
    state_key: ObjectKey | None = None,
    *,
    says: bool = True,
) -> Decider:
    """The decider; its state names the input before, and the layout `schema`.

    Each key is counted by itself, or all of them under `state_key`. It keeps the numbers to itself
    unless it `says` them.
    """

    def decide(key: ObjectKey, event: Received[EventData], before: StateStored | None) -> Verdict:
        if before is not None:
            check_schema(before.state, schema)
        count = before.state["count"] if before else 0
        state = {
            "schema": schema,
            "count": count + 1,
            "previous": before.cause if before else "",
        }
        decided = (said(key, count),) if says else ()
        return Verdict(state, (*decided, *timers(event)))

    return Decider(bus, schema, decide, lambda event: state_key or event.key, CollectorRegistry())


def said(key: ObjectKey, count: int) -> Count:
    """The decision that follows the `count`-th input."""
    record = DecisionRecord(decider="d", version="1", policy="p", policy_digest="d", input={})
    return Count(
        str(key),
        ScalingDecided(
            current=count, desired=count + 1, target_uid="u", target_generation=1, record=record
        ),
    )


async def handle(decider: Decider, event: Received[EventData], deliveries: int = 1) -> None:
    """The n-th delivery of an event."""
    await decider.handle(replace(event, deliveries=deliveries), _NO_MESSAGE)


async def deliver(decider: Decider, event: Received[EventData]) -> int:
    """As the durable does: again until it is handled; how many deliveries it took."""
    for deliveries in range(1, 6):
        try:
            await handle(decider, event, deliveries)
        except Exception as error:
            fate = fate_of(error, deliveries)
            assert isinstance(fate, Again), fate
        else:
            return deliveries
    raise AssertionError(f"{event.id} is never handled")


async def sample(server: NatsServer, *ids: str, key: ObjectKey = KEY, time_ms: int = 0) -> None:
    """Publish a sample under each id, at virtual `time_ms` or now."""
    data = MetricsSampled(
        policy="AutoscalingPolicy/default/p", taken_at_ms=0, window_ms=0, targets=[]
    )
    async with server.bus(Service.METRICS_COLLECTOR) as writer:
        for id_ in ids:
            await writer.publish(writer.event(data, key, id=id_, time_ms=time_ms or None))


async def inbox(server: NatsServer, *ids: str) -> list[Received[EventData]]:
    """What stands in the autoscaler's inbox, once the events with these ids do."""
    async with server.bus(Service.PROVISIONER) as bus:

        async def read() -> list[Received[EventData]]:
            stream = inbox_stream(Service.AUTOSCALER)
            follower = Follower(bus.connection, stream, "inbox.>", Start.everything())
            found = [decode(item, bus.clock.anchor) async for item in follower.snapshot()]
            assert set(ids) <= {event.id for event in found}
            return found

        return await eventually(read)


async def sampled(server: NatsServer, *ids: str, time_ms: int = 0) -> list[Received[EventData]]:
    """The inbox after samples with these ids were published."""
    await sample(server, *ids, time_ms=time_ms)
    return await inbox(server, *ids)


async def decisions(server: NatsServer) -> list[Delivered]:
    """What stands in DECISIONS, in order: decisions, timers that wait, fired ones, states."""
    async with server.connection() as connection:
        follower = Follower(connection, Stream.DECISIONS, f"{ROOT}.>", Start.everything())
        return [message async for message in follower.snapshot()]


@contextlib.asynccontextmanager
async def autoscaler(server: NatsServer, timers: Timers = no_timers) -> AsyncIterator[Decider]:
    """The decider on a bus of its own."""
    async with server.bus(Service.AUTOSCALER) as bus:
        yield counting(bus, timers)
