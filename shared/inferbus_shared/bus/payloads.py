"""Bodies too large for an event: kept in the object store, named by `ce-dataref`.

The name is the digest of the body, so that the same body is stored once and a repeated event refers
to the same one.
"""

from dataclasses import replace

import nats.js.errors

from inferbus_contracts.canonical import digest_bytes
from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_contracts.topology import MAX_BODY_BYTES, PAYLOADS_STORE
from inferbus_shared.bus.connection import Connection
from inferbus_shared.bus.messages import DATA_REFERENCE, Delivered, Outgoing

_SCHEME = f"nats-object://{PAYLOADS_STORE}/"


async def externalise(connection: Connection, message: Outgoing) -> Outgoing:
    """`message` itself, or one that refers to its body in the object store."""
    if len(message.body) <= MAX_BODY_BYTES:
        return message
    name = digest_bytes(message.body)
    objects = await connection.client.jetstream().object_store(PAYLOADS_STORE)
    try:
        await objects.get_info(name)
    except nats.js.errors.ObjectNotFoundError:
        await objects.put(name, message.body)
    return replace(
        message, body=b"", headers=message.headers | {DATA_REFERENCE: f"{_SCHEME}{name}"}
    )


async def internalise(connection: Connection, message: Delivered) -> Delivered:
    """`message` with its body, fetched from the object store where it only refers to it.

    Raises `ProblemsError` (POISON_EVENT) when the body is gone.
    """
    reference = message.headers.get(DATA_REFERENCE, "")
    if not reference:
        return message
    objects = await connection.client.jetstream().object_store(PAYLOADS_STORE)
    try:
        stored = await objects.get(reference.removeprefix(_SCHEME))
    except nats.js.errors.NotFoundError as error:
        raise ProblemsError(
            Problem(
                code=ErrorCode.POISON_EVENT,
                message=f"the body that {reference} names is gone",
                field=message.subject,
            )
        ) from error
    return replace(message, data=stored.data or b"")
