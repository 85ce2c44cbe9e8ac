"""Notices that the process stood still: stopped by a signal, or with its machine.

Whoever was away for so long that another took over must not go on with what was under way, and a
deadline alone can't tell that from an API server that is slow.

Invariant: what runs inside is called off before any of it goes on, if the gap was longer than
allowed; a task is woken by a turn of the loop that comes after the timers of the one that ended the
gap. (asyncio, `BaseEventLoop._run_once`; libuv, `uv_run`)
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Final

BEAT_SECONDS: Final = 0.25


class StoodStillError(Exception):
    """The process stood still for longer than allowed."""


@contextlib.asynccontextmanager
async def called_off_after(standstill_seconds: float) -> AsyncIterator[None]:
    """Cancel what runs inside, and raise `StoodStillError`, after so long a standstill."""
    loop = asyncio.get_running_loop()
    task = asyncio.current_task()
    assert task is not None
    last = loop.time()
    stood_still = False
    timer: asyncio.TimerHandle

    def beat() -> None:
        nonlocal last, stood_still, timer
        now = loop.time()
        if now - last > standstill_seconds:
            stood_still = True
            task.cancel()
            return
        last = now
        timer = loop.call_later(BEAT_SECONDS, beat)

    timer = loop.call_later(BEAT_SECONDS, beat)
    try:
        yield
    except asyncio.CancelledError:
        if stood_still and task.uncancel() == 0:
            raise StoodStillError from None
        raise
    finally:
        timer.cancel()
