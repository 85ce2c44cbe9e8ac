"""Samples as the metrics collector would write them, as fast as the bus takes them.

Invariant: the value of a target differs between two samples in a row so much that each of them must
change the decision.
"""

import asyncio
from collections.abc import Sequence

from inferbus_contracts.envelope import event_id
from inferbus_contracts.events.metrics import (
    MetricAggregate,
    MetricKind,
    MetricsSampled,
    TargetSample,
)
from inferbus_contracts.keys import ObjectKey
from inferbus_shared.bus.bus import Bus
from tests.bench.fleet import workload_key
from tests.support.platform import SCALING_METRIC

HIGH, LOW = 6.0, 0.0
"""Running requests of a target; two of them fill a replica."""


async def publish_rounds(bus: Bus, models: Sequence[str], rounds: int, name: str = "") -> set[str]:
    """That many samples of every model, those of one model in order; their ids.

    `bus` is the collector's; another `name` gives other ids.
    """
    async with asyncio.TaskGroup() as together:
        tasks = [together.create_task(_publish(bus, model, rounds, name)) for model in models]
    return {id_ for task in tasks for id_ in task.result()}


async def _publish(bus: Bus, model: str, rounds: int, name: str) -> list[str]:
    key = workload_key(model)
    ids = [
        event_id(MetricsSampled.event_type, key, f"bench|{name}|{number}")
        for number in range(rounds)
    ]
    for number, id_ in enumerate(ids):
        data = _sample(bus, key, HIGH if number % 2 == 0 else LOW)
        await bus.publish(bus.event(data, key, id=id_))
    return ids


def _sample(bus: Bus, key: ObjectKey, value: float) -> MetricsSampled:
    metric = MetricAggregate(name=SCALING_METRIC, kind=MetricKind.GAUGE, value=value, pods=1)
    now_ms = bus.clock.now_ms()
    return MetricsSampled(
        policy=str(key._replace(kind="AutoscalingPolicyBinding")),
        taken_at_ms=now_ms,
        window_ms=0,
        targets=[TargetSample(target=str(key), metrics=[metric], ready_pods=1)],
    )
