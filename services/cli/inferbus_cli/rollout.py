"""Waiting until what was applied serves, by listening to the facts."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from inferbus_cli.kind_words import name_of
from inferbus_cli.readiness import ROUTED, WAITED_FOR, WORKLOADS, Readiness, Waiting
from inferbus_cli.reading import following
from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_contracts.keys import ObjectKey
from inferbus_shared.bus.bus import Bus
from inferbus_shared.bus.follow import Follower

_MOST_TOLD = 20


async def wait_until_ready(
    bus: Bus,
    applied: Mapping[ObjectKey, tuple[str, int]],
    timeout_seconds: float,
    say: Callable[[str], None],
) -> None:
    """Return once everything applied (uid and generation by key) serves; `say` tells how far it is.

    Raises `ProblemsError` (TIMED_OUT) with what doesn't serve yet after `timeout_seconds`, real
    time, and why.
    """
    readiness = Readiness(applied)
    changed = asyncio.Event()
    followers = [
        *(bus.follow("spec.changed", kind=kind) for kind in sorted(WAITED_FOR)),
        *(bus.follow("workload.observed", kind=kind) for kind in sorted(WORKLOADS)),
        *(bus.follow("routes.resolved", kind=kind) for kind in sorted(ROUTED)),
    ]

    async def until_ready() -> None:
        for follower in followers:
            await follower.caught_up()
        while waiting := readiness.waiting():
            say(_told(waiting))
            await changed.wait()
            changed.clear()

    folds = [_fold(bus, follower, readiness, changed) for follower in followers]
    try:
        async with asyncio.timeout(timeout_seconds):
            await _beside(until_ready(), folds)
    except TimeoutError:
        raise ProblemsError(
            *(_late(one, timeout_seconds) for one in readiness.waiting()[:_MOST_TOLD])
        ) from None


async def _beside(work: Coroutine[Any, Any, None], folds: list[Coroutine[Any, Any, None]]) -> None:
    """Run `work` to its end while the folds run; raises what a fold fails with."""
    tasks = [asyncio.ensure_future(one) for one in (work, *folds)]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _fold(bus: Bus, follower: Follower, into: Readiness, changed: asyncio.Event) -> None:
    async for read in following(bus, follower):
        if read.event is not None:
            into.take(read.event.key, read.event.data)
            changed.set()


def _told(waiting: list[Waiting]) -> str:
    first = waiting[0]
    rest = f" (and {len(waiting) - 1} more)" if len(waiting) > 1 else ""
    return f"waiting for {name_of(first.key)}: {first.why}{rest}"


def _late(waiting: Waiting, timeout_seconds: float) -> Problem:
    return Problem(
        code=ErrorCode.TIMED_OUT,
        message=f"it doesn't serve after {timeout_seconds:.0f} s: {waiting.why}",
        object=str(waiting.key),
        remedy=f"`inferbus describe {waiting.key.kind.lower()} {waiting.key.name}` shows its "
        "events; what was applied stays applied",
    )
