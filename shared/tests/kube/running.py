"""A reflector that runs as long as a test looks at it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import TypeVar

from inferbus_shared.kube.reflector import Reflector

T = TypeVar("T")


@contextlib.asynccontextmanager
async def running(reflector: Reflector[T]) -> AsyncIterator[Reflector[T]]:
    """Fails the test when it ended by itself."""
    task = asyncio.create_task(reflector.run())
    try:
        yield reflector
        assert not task.done(), task.exception()
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
