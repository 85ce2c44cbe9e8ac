"""Waiting for a condition without fixed sleeps: the only way a test waits."""

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, overload

T = TypeVar("T")


@overload
async def eventually(
    predicate: Callable[[], Awaitable[T]],
    timeout: float = 15.0,
    what: str | Callable[[], str] = "",
) -> T: ...


@overload
async def eventually(
    predicate: Callable[[], T],
    timeout: float = 15.0,
    what: str | Callable[[], str] = "",
) -> T: ...


async def eventually(
    predicate: Callable[[], Any],
    timeout: float = 15.0,
    what: str | Callable[[], str] = "",
) -> Any:
    """Return the first truthy value of `predicate`, asked again and again.

    An exception counts as "not yet". After `timeout` seconds raises `AssertionError` with the last
    value or exception.
    """
    deadline = time.monotonic() + timeout
    pause = 0.002
    while True:
        last: object
        try:
            value = predicate()
            if inspect.isawaitable(value):
                value = await value
            if value:
                return value
            last = value
        except Exception as error:
            last = error
        if time.monotonic() > deadline:
            said = what() if callable(what) else what or predicate
            raise AssertionError(f"not within {timeout} s: {said}; last: {last!r}")
        await asyncio.sleep(pause)
        pause = min(pause * 1.5, 0.1)
