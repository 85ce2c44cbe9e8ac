"""Bodies too large for an event: kept in the object store, named by `ce-dataref`.

The name is the digest of the body, so that the same body is stored once and a repeated event refers
to the same one.
"""

import asyncio
from dataclasses import replace
from typing import Any

import nats.errors
import nats.js.errors
from nats.js import JetStreamContext

from inferbus_contracts.canonical import digest_bytes
from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_contracts.topology import MAX_BODY_BYTES, PAYLOADS_STORE
from inferbus_shared.bus.connection import Connection
from inferbus_shared.bus.jetstream import JetStreamError, store_problem, unreachable
from inferbus_shared.bus.messages import DATA_REFERENCE, Delivered, Outgoing

FETCH_SECONDS = 10.0
"""A body of which parts are gone would be waited for without end."""

_SCHEME = f"nats-object://{PAYLOADS_STORE}/"
_UNUSABLE = (
    nats.js.errors.NotFoundError,
    nats.js.errors.InvalidObjectNameError,
    nats.js.errors.BadObjectMetaError,
    nats.js.errors.LinkIsABucketError,
    nats.js.errors.DigestMismatchError,
)


async def externalise(connection: Connection, message: Outgoing) -> Outgoing:
    """`message` itself, or one that refers to its body in the object store.

    Raises `ProblemsError` when the body can't be stored: the event must not be either.
    """
    if len(message.body) <= MAX_BODY_BYTES:
        return message
    name = digest_bytes(message.body)
    try:
        await _keep(connection, name, message.body)
    except nats.js.errors.APIError as error:
        refused = JetStreamError(name, vars(error))
        raise ProblemsError(store_problem(message.subject, refused)) from error
    except nats.errors.Error as error:
        raise ProblemsError(unreachable(message.subject, error)) from error
    return replace(
        message, body=b"", headers=message.headers | {DATA_REFERENCE: f"{_SCHEME}{name}"}
    )


async def _keep(connection: Connection, name: str, body: bytes) -> None:
    objects = await _JetStream(connection.client).object_store(PAYLOADS_STORE)
    try:
        await objects.get_info(name)
    except nats.js.errors.ObjectNotFoundError:
        await objects.put(name, body)


class _JetStream(JetStreamContext):
    """Deletes nothing: no service may. What an upload that failed leaves behind ages out."""

    async def purge_stream(self, *_: Any, **__: Any) -> bool:
        """Not asked for: the refusal would hide why the upload failed."""
        return False


async def internalise(connection: Connection, message: Delivered) -> Delivered:
    """`message` with its body, fetched from the object store where it only refers to it.

    Raises `ProblemsError`: POISON_EVENT when the body is gone or the reference names none, a code
    of the bus when it can't be had now.
    """
    reference = message.headers.get(DATA_REFERENCE, "")
    if not reference:
        return message
    if not reference.startswith(_SCHEME):
        raise ProblemsError(_unusable(message, f"{reference} names no body in {_SCHEME}"))
    try:
        async with asyncio.timeout(FETCH_SECONDS):
            objects = await connection.client.jetstream().object_store(PAYLOADS_STORE)
            stored = await objects.get(reference.removeprefix(_SCHEME))
    except _UNUSABLE as error:
        reason = f"the body that {reference} names is gone or broken"
        raise ProblemsError(_unusable(message, reason)) from error
    except (nats.errors.Error, TimeoutError) as error:
        raise ProblemsError(unreachable(reference, error)) from error
    return replace(message, data=stored.data or b"")


def _unusable(message: Delivered, reason: str) -> Problem:
    return Problem(
        code=ErrorCode.POISON_EVENT,
        message=f"event {message.stream}:{message.sequence} cannot be used: {reason}",
        object=message.headers.get("ce-subject"),
        field=message.subject,
        value=message.headers.get(DATA_REFERENCE),
        remedy="see the dead letters with `inferbus tap --dead`",
    )
