"""The JetStream requests this project makes, and what their errors mean.

Requests go out as JSON on `$JS.API.…`, so that the subject that permissions are checked on is
always the one written here (nats-py varies it with the options given).
"""

import json
from typing import Any

import nats.errors

from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_shared.bus.connection import Connection

REQUEST_SECONDS = 5.0

STREAM_NOT_FOUND = 10059
CONSUMER_NOT_FOUND = 10014
MESSAGE_NOT_FOUND = 10037
LOST_RACES = frozenset({10071, 10164, 10201})
"""Wrong last sequence; the same while the other write is still on its way to the replicas; an id of
the batch is stored already, which is looked at before the sequence is."""
INCOMPLETE_BATCH = 10176
"""The server doesn't know the batch's first messages: it was restarted or waited too long."""
STORAGE_EXHAUSTED = frozenset({10023, 10047, 10077, 10122})
"""Insufficient resources, storage resources exceeded, store failed, maximum bytes exceeded."""


class JetStreamError(Exception):
    """The server refused a request."""

    def __init__(self, call: str, error: dict[str, Any]) -> None:
        self.code = int(error.get("err_code", 0))
        self.description = str(error.get("description", "no description"))
        super().__init__(f"{call}: {self.description} ({self.code})")


async def api(
    connection: Connection, call: str, body: dict[str, Any] | None = None
) -> dict[str, Any]:
    """One JetStream API request.

    Raises `JetStreamError` when the server refuses it and `ProblemsError` when nobody answers.
    """
    try:
        reply = await connection.request(
            f"$JS.API.{call}",
            b"" if body is None else json.dumps(body).encode(),
            timeout=REQUEST_SECONDS,
        )
    except nats.errors.Error as error:
        raise ProblemsError(unreachable(call, error)) from error
    answer: dict[str, Any] = json.loads(reply.data)
    if "error" in answer:
        raise JetStreamError(call, answer["error"])
    return answer


def unreachable(what: str, error: Exception) -> Problem:
    """The problem of a request that got no answer."""
    if isinstance(error, nats.errors.NoRespondersError):
        return Problem(
            code=ErrorCode.BUS_UNREACHABLE,
            message=f"nobody answers {what}",
            remedy="check that JetStream is enabled and the service that answers it runs",
        )
    return Problem(
        code=ErrorCode.BUS_TIMEOUT,
        message=f"{what} got no answer from the bus: {error}",
        remedy="check that the NATS server runs and this user is allowed to ask",
    )


def store_problem(subject: str, error: JetStreamError) -> Problem:
    """The problem of a message that could not be stored."""
    if error.code in STORAGE_EXHAUSTED:
        return Problem(
            code=ErrorCode.BUS_FULL,
            message=f"the bus refused {subject}: its storage is used up ({error.description})",
            remedy="free disk space or raise the storage limit; nothing acknowledged was lost",
        )
    return Problem(
        code=ErrorCode.BUS_REFUSED,
        message=f"the bus refused {subject}: {error.description} ({error.code})",
    )
