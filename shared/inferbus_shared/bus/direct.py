"""The last message of a subject, read without a consumer."""

import nats.errors

from inferbus_contracts.envelope import parse_time
from inferbus_contracts.errors import ProblemsError
from inferbus_shared.bus.connection import Connection
from inferbus_shared.bus.jetstream import REQUEST_SECONDS, unreachable
from inferbus_shared.bus.messages import Delivered

_OWN_HEADERS = ("Nats-Stream", "Nats-Subject", "Nats-Sequence", "Nats-Time-Stamp")


async def last_message(connection: Connection, stream: str, subject: str) -> Delivered | None:
    """The last message; None where there is none. Raises `ProblemsError` without an answer."""
    try:
        reply = await connection.request(
            f"$JS.API.DIRECT.GET.{stream}.{subject}", timeout=REQUEST_SECONDS
        )
    except nats.errors.Error as error:
        raise ProblemsError(unreachable(f"the last message of {subject}", error)) from error
    headers = reply.headers or {}
    if headers.get("Status"):
        return None
    return Delivered(
        subject=subject,
        headers={name: value for name, value in headers.items() if name not in _OWN_HEADERS},
        data=reply.data,
        stream=stream,
        sequence=int(headers["Nats-Sequence"]),
        stamp_ms=parse_time(headers["Nats-Time-Stamp"]),
    )
