"""Carrying out what was planned, stage by stage.

Invariant: nothing follows a snapshot that couldn't be written, and no pod is created whose PodGroup
couldn't be; whatever else fails, the rest is carried out, unless its time is over.
"""

import asyncio
import logging
import math
import time
from collections.abc import Iterable

from inferbus_contracts.topology import MEMBER_TTL_SECONDS
from inferbus_shared.bus.membership import RENEW_SECONDS
from inferbus_shared.http_client.send_by import sent_by
from inferbus_workload_reconciler.actions import (
    Action,
    Create,
    Update,
    is_held,
    is_required,
    stages,
)
from inferbus_workload_reconciler.ports import ActionResult, Done, Substrate
from inferbus_workload_reconciler.standstill import StoodStillError, called_off_after
from inferbus_workload_reconciler.workload import WorkloadSpec

MOST_AT_ONCE = 32
"""Actions under way at a time: what waits for its turn can be called off, what was sent can't."""

STANDSTILL_SECONDS = MEMBER_TTL_SECONDS - RENEW_SECONDS
"""So long no other instance takes over from one that stopped."""

log = logging.getLogger("inferbus.workload-reconciler")


async def carry_out(
    substrate: Substrate,
    workload: WorkloadSpec,
    actions: Iterable[Action],
    hands: asyncio.Semaphore | None = None,
    begin_by_seconds: float = math.inf,
) -> tuple[Done, ...]:
    """Carry actions out; those that others kept from being tried are left out.

    `hands` limits how many are under way, of all workloads that share it. None begins after
    `begin_by_seconds` of the machine's steady clock (`time.monotonic`), and what is under way when
    the process stands still is called off: whether it was done, the next look shows.
    """
    hands = hands or asyncio.Semaphore(MOST_AT_ONCE)
    done: list[Done] = []
    try:
        async with called_off_after(STANDSTILL_SECONDS):
            for stage in stages(actions):
                failed = [one.action for one in done if not one.well]
                if any(map(is_required, failed)):
                    break
                ready = [one for one in stage if not is_held(one, failed)]
                await asyncio.gather(
                    *(
                        _begin(substrate, workload, one, hands, begin_by_seconds, done)
                        for one in ready
                    )
                )
    except StoodStillError:
        log.warning("stood still: what was under way is looked at anew")
    return tuple(done)


async def _begin(
    substrate: Substrate,
    workload: WorkloadSpec,
    action: Action,
    hands: asyncio.Semaphore,
    begin_by_seconds: float,
    done: list[Done],
) -> None:
    async with hands:
        now = time.monotonic()
        if now <= begin_by_seconds:
            with sent_by(now + STANDSTILL_SECONDS):
                done.append(Done(action, await _do(substrate, workload, action)))


async def _do(substrate: Substrate, workload: WorkloadSpec, action: Action) -> ActionResult:
    if isinstance(action, Create):
        return await substrate.apply(action)
    if isinstance(action, Update):
        return await substrate.update(workload, action)
    return await substrate.delete(workload, action)
