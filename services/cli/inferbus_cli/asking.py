"""Questions about decisions: what several commands ask the console, in one way."""

from inferbus_cli.kind_words import kind_named
from inferbus_cli.platform.directory import PlatformDirectory
from inferbus_cli.progress import progress
from inferbus_cli.session import Session, on_bus
from inferbus_contracts.api.console import (
    ConsoleQuery,
    ExplainedDecision,
    OrderReply,
    OrderRequest,
    WhyReply,
    WhyRequest,
)


def ask_why(
    directory: PlatformDirectory, target: str, namespace: str | None, limit: int
) -> tuple[list[ExplainedDecision], int]:
    """The last decisions about a target, newest first, and the time now (virtual ms)."""
    request = WhyRequest(target=qualified(target, namespace), limit=limit)

    async def work(session: Session) -> tuple[list[ExplainedDecision], int]:
        async with progress("asking the console"):
            reply = await session.console(ConsoleQuery.WHY, request, WhyReply)
        return reply.decisions, session.now_ms

    return on_bus(directory, work)


def give_order(
    directory: PlatformDirectory, order: OrderRequest, lasting_seconds: float | None = None
) -> str:
    """Give an order, for so many virtual seconds from now; the id of the event that it became."""

    async def work(session: Session) -> str:
        until_ms = None if lasting_seconds is None else _after(session.now_ms, lasting_seconds)
        request = order.model_copy(update={"until_ms": until_ms})
        async with progress("asking the console"):
            reply = await session.console(ConsoleQuery.ORDER, request, OrderReply)
        return reply.event_id

    return on_bus(directory, work)


def _after(now_ms: int, seconds: float) -> int:
    return now_ms + round(seconds * 1000)


def qualified(word: str, namespace: str | None) -> str:
    """`kind/name` with the namespace that was named; anything else as it is.

    Raises `ProblemsError` when a namespace is named and the kind isn't known.
    """
    parts = word.split("/")
    if namespace is None or len(parts) != 2:
        return word
    return str(kind_named(parts[0]).key(parts[1], namespace))
