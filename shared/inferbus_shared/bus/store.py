"""Storing messages: one by one, or several together or not at all.

A batch is one atomic unit: a compare-and-set that fails inside it rejects all of it. An outcome
that is not known (no answer in time) is its own error, because the caller must look before it
repeats.
"""

import json
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace

import nats.errors

from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_shared.bus.connection import Connection
from inferbus_shared.bus.jetstream import (
    INCOMPLETE_BATCH,
    LOST_RACES,
    REQUEST_SECONDS,
    JetStreamError,
    store_problem,
    unreachable,
)
from inferbus_shared.bus.messages import Outgoing

EXPECTED_SEQUENCE = "Nats-Expected-Last-Subject-Sequence"
EXPECTED_SUBJECT = "Nats-Expected-Last-Subject-Sequence-Subject"

MAX_BATCH = 1000
"""The server's limit of messages in one batch."""


@dataclass(frozen=True, slots=True)
class Stored:
    """The server's acknowledgement."""

    stream: str
    sequence: int
    duplicate: bool = False


class WrongSequenceError(Exception):
    """A compare-and-set lost: somebody else wrote the subject, or a batch's event, first.

    Nothing was stored.
    """


class UnknownOutcomeError(ProblemsError):
    """No answer came in time, or a batch was torn apart: it may be stored or not."""


def expecting(message: Outgoing, sequence: int, among: str = "") -> Outgoing:
    """`message`, stored only while `sequence` is the last one of its subject (0: none).

    With `among`, a filter, it must be the last one of all subjects that match.
    """
    expected = {EXPECTED_SEQUENCE: str(sequence)} | ({EXPECTED_SUBJECT: among} if among else {})
    return replace(message, headers=message.headers | expected)


async def store(connection: Connection, message: Outgoing) -> Stored:
    """Store one message.

    Raises `WrongSequenceError`, `UnknownOutcomeError` or, with the reason, `ProblemsError`.
    """
    return await _ask(connection, message)


async def store_together(connection: Connection, messages: Sequence[Outgoing]) -> Stored:
    """Store all messages, or none; they belong to one stream. Returns the last one's position.

    Raises as `store` does, and `ValueError` for an empty or too long sequence.
    """
    if not 0 < len(messages) <= MAX_BATCH:
        raise ValueError(f"a batch holds 1 to {MAX_BATCH} messages, not {len(messages)}")
    if len(messages) == 1:
        return await _ask(connection, messages[0])
    batch = secrets.token_hex(12)
    for position, message in enumerate(messages[:-1], 1):
        headers = message.headers | _batch_headers(batch, position)
        await connection.client.publish(
            connection.settings.subject_prefix + message.subject, message.body, headers=headers
        )
    headers = messages[-1].headers | _batch_headers(batch, len(messages))
    return await _ask(
        connection, replace(messages[-1], headers=headers | {"Nats-Batch-Commit": "1"})
    )


def _batch_headers(batch: str, position: int) -> dict[str, str]:
    return {"Nats-Batch-Id": batch, "Nats-Batch-Sequence": str(position)}


async def _ask(connection: Connection, message: Outgoing) -> Stored:
    subject = connection.settings.subject_prefix + message.subject
    try:
        reply = await connection.request(
            subject, message.body, timeout=REQUEST_SECONDS, headers=message.headers
        )
    except nats.errors.MaxPayloadError as error:
        raise ProblemsError(_too_large(subject, len(message.body))) from error
    except nats.errors.Error as error:
        raise UnknownOutcomeError(unreachable(subject, error)) from error
    answer = json.loads(reply.data)
    if "error" in answer:
        refused = JetStreamError(subject, answer["error"])
        if refused.code in LOST_RACES:
            raise WrongSequenceError(str(refused))
        if refused.code == INCOMPLETE_BATCH:
            raise UnknownOutcomeError(_torn(subject, refused)) from refused
        raise ProblemsError(store_problem(subject, refused)) from refused
    return Stored(answer["stream"], int(answer["seq"]), bool(answer.get("duplicate")))


def _torn(subject: str, refused: JetStreamError) -> Problem:
    return Problem(
        code=ErrorCode.BUS_TIMEOUT,
        message=f"the server lost the beginning of the batch: {refused.description}",
        field=subject,
        remedy="check that the NATS server runs; what belongs together is sent again as a whole",
    )


def _too_large(subject: str, size: int) -> Problem:
    return Problem(
        code=ErrorCode.TOO_LARGE,
        message=f"a message of {size} bytes is over the server's limit",
        field=subject,
        remedy="raise max_payload of the NATS server, or make the object smaller",
    )
