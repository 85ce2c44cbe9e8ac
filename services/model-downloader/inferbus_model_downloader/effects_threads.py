"""Blocking calls in threads, in a way that survives cancellation.

A thread can't be interrupted: if its caller went on at once, a descriptor could be closed, and its
number given to another file, while the thread still writes to it. Invariant: when `in_thread`
returns or raises, the call is over.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


async def in_thread(call: Callable[P, T], *args: P.args, **options: P.kwargs) -> T:
    """Run a short blocking call in a thread; cancellation takes effect when it has ended."""
    work = asyncio.ensure_future(asyncio.to_thread(call, *args, **options))
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        await asyncio.wait([work])
        raise


async def together(*works: Coroutine[Any, Any, None]) -> None:
    """Run all; the first failure cancels the others and is raised as it is."""
    try:
        async with asyncio.TaskGroup() as group:
            for work in works:
                group.create_task(work)
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from failures
