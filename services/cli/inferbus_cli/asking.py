"""Questions to the console, asked in one way by the commands that have them."""

import asyncio
from typing import TypeVar

from inferbus_cli.kind_words import kind_named
from inferbus_cli.platform.directory import PlatformDirectory
from inferbus_cli.progress import progress
from inferbus_cli.session import Session, on_bus
from inferbus_contracts.api.console import (
    ConsoleQuery,
    OrderReply,
    OrderRequest,
    WhyReply,
    WhyRequest,
    console_subject,
)
from inferbus_contracts.api.objects import Reply
from inferbus_contracts.base import EventData
from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError

ReplyT = TypeVar("ReplyT", bound=Reply)

CONSOLE_SECONDS = 4.0
"""Longer than a console takes to start anew."""


async def ask_console(
    session: Session, query: ConsoleQuery, request: EventData, reply: type[ReplyT]
) -> ReplyT:
    """Ask the console; raises `ProblemsError` with what it refuses, or that it is silent."""
    try:
        async with progress("asking the console"), asyncio.timeout(CONSOLE_SECONDS):
            return await session.bus.ask(console_subject(query), request, reply)
    except TimeoutError:
        raise ProblemsError(
            Problem(
                code=ErrorCode.BUS_TIMEOUT,
                message=f"the bus answers, the console doesn't within {CONSOLE_SECONDS:.0f} s",
                remedy="`inferbus logs console` says why",
            )
        ) from None


def ask_why(
    directory: PlatformDirectory, target: str, namespace: str | None, limit: int
) -> tuple[WhyReply, int]:
    """The last decisions about a target, newest first, and the time now (virtual ms)."""
    request = WhyRequest(target=qualified(target, namespace), limit=limit)

    async def work(session: Session) -> tuple[WhyReply, int]:
        reply = await ask_console(session, ConsoleQuery.WHY, request, WhyReply)
        return reply, session.now_ms

    return on_bus(directory, work)


def give_order(
    directory: PlatformDirectory, order: OrderRequest, lasting_seconds: float | None = None
) -> str:
    """Give an order, for so many virtual seconds from now; the id of the event that it became."""

    async def work(session: Session) -> str:
        until_ms = None if lasting_seconds is None else _after(session.now_ms, lasting_seconds)
        request = order.model_copy(update={"until_ms": until_ms})
        reply = await ask_console(session, ConsoleQuery.ORDER, request, OrderReply)
        return reply.event_id

    return on_bus(directory, work)


def _after(now_ms: int, seconds: float) -> int:
    return now_ms + round(seconds * 1000)


def qualified(word: str, namespace: str | None) -> str:
    """`kind/name` and `kind/namespace/name` with the kind's own name; anything else as it is.

    A namespace that was named is put in. Raises `ProblemsError` when the kind isn't known, except
    in `name/role`, which looks the same.
    """
    parts = word.split("/")
    if len(parts) == 1:
        return word
    if len(parts) == 2 and namespace is not None:
        return str(kind_named(parts[0]).key(parts[1], namespace))
    try:
        return "/".join((kind_named(parts[0]).token, *parts[1:]))
    except ProblemsError:
        if len(parts) == 2:
            return word
        raise
