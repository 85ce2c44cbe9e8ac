"""Whether a service can do its work: connected, and everything it needs stands on the server.

A service creates nothing. What is missing is named, so that a deleted durable shows at once instead
of as silence.
"""

from collections.abc import Iterable, Mapping

from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_contracts.permissions import followed
from inferbus_contracts.stream_specs import DurableSpec
from inferbus_shared.bus.connection import Connection
from inferbus_shared.bus.jetstream import JetStreamError, api

NOT_CONNECTED = {"bus": "not connected"}


async def missing(connection: Connection, durables: Iterable[DurableSpec]) -> Mapping[str, str]:
    """What keeps the service from its work, by name; empty when nothing does."""
    if not connection.connected:
        return NOT_CONNECTED
    calls = {
        f"stream {stream}": f"STREAM.INFO.{stream}"
        for stream in sorted({stream for stream, _ in followed(connection.service)})
    } | {
        f"durable {item.stream}.{item.name}": f"CONSUMER.INFO.{item.stream}.{item.name}"
        for item in durables
    }
    reasons: dict[str, str] = {}
    for what, call in calls.items():
        try:
            await api(connection, call)
        except JetStreamError as error:
            reasons[what] = error.description
        except ProblemsError as error:
            reasons[what] = str(error)
    return reasons


async def require(connection: Connection, durables: Iterable[DurableSpec]) -> None:
    """Raise `ProblemsError` with one problem for everything that is missing."""
    reasons = await missing(connection, durables)
    if reasons:
        raise ProblemsError(
            *(
                Problem(
                    code=ErrorCode.TOPOLOGY_MISSING,
                    message=f"{what}: {reason}",
                    remedy="run `inferbus provision` against this NATS server",
                )
                for what, reason in reasons.items()
            )
        )
