"""Carrying out what was planned, stage by stage.

Invariant: nothing follows a snapshot that couldn't be written, and no pod is created whose PodGroup
couldn't be; whatever else fails, the rest is carried out, unless its time is over.
"""

import asyncio
import math
import time
from collections.abc import Iterable

from inferbus_workload_reconciler.actions import (
    Action,
    Create,
    Update,
    is_held,
    is_required,
    stages,
)
from inferbus_workload_reconciler.ports import ActionResult, Done, Substrate
from inferbus_workload_reconciler.workload import WorkloadSpec

MOST_AT_ONCE = 32
"""Actions under way at a time: what waits for its turn can be called off, what was sent can't."""


async def carry_out(
    substrate: Substrate,
    workload: WorkloadSpec,
    actions: Iterable[Action],
    hands: asyncio.Semaphore | None = None,
    begin_by_seconds: float = math.inf,
) -> tuple[Done, ...]:
    """Carry actions out; those that others kept from being tried are left out.

    `hands` limits how many are under way, of all workloads that share it. None begins after
    `begin_by_seconds` of the machine's steady clock (`time.monotonic`).
    """
    hands = hands or asyncio.Semaphore(MOST_AT_ONCE)
    done: list[Done] = []

    async def begin(action: Action) -> Done | None:
        async with hands:
            if time.monotonic() > begin_by_seconds:
                return None
            return Done(action, await _do(substrate, workload, action))

    for stage in stages(actions):
        failed = [one.action for one in done if not one.well]
        if any(map(is_required, failed)):
            break
        begun = await asyncio.gather(*(begin(one) for one in stage if not is_held(one, failed)))
        done += filter(None, begun)
    return tuple(done)


async def _do(substrate: Substrate, workload: WorkloadSpec, action: Action) -> ActionResult:
    if isinstance(action, Create):
        return await substrate.apply(action)
    if isinstance(action, Update):
        return await substrate.update(workload, action)
    return await substrate.delete(workload, action)
