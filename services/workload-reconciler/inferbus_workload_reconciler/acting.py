"""Carrying out what was planned, stage by stage.

Invariant: nothing follows a snapshot that couldn't be written, and no pod is created whose PodGroup
couldn't be; whatever else fails, the rest is carried out.
"""

import asyncio
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


async def carry_out(
    substrate: Substrate, workload: WorkloadSpec, actions: Iterable[Action]
) -> tuple[Done, ...]:
    """Carry actions out; those that others kept from being tried are left out."""
    done: list[Done] = []
    for stage in stages(actions):
        failed = [one.action for one in done if not one.well]
        if any(map(is_required, failed)):
            break
        ready = [one for one in stage if not is_held(one, failed)]
        results = await asyncio.gather(*(_do(substrate, workload, one) for one in ready))
        done += map(Done, ready, results)
    return tuple(done)


async def _do(substrate: Substrate, workload: WorkloadSpec, action: Action) -> ActionResult:
    if isinstance(action, Create):
        return await substrate.apply(action)
    if isinstance(action, Update):
        return await substrate.update(workload, action)
    return await substrate.delete(workload, action)
