"""Telling instances of a service something at once that isn't worth keeping: core NATS.

Invariant: nothing is stored, answered or waited for; without a connection what is said is lost.
"""

import contextlib
from collections.abc import Awaitable, Callable

import nats.errors
from nats.aio.msg import Msg

from inferbus_shared.bus.connection import Connection


async def say(connection: Connection, subject: str, body: bytes) -> None:
    """Tell whoever listens now."""
    if connection.connected:
        with contextlib.suppress(nats.errors.Error):  # as if nobody had listened
            await connection.client.publish(subject, body)


async def listen(
    connection: Connection, subject: str, heard: Callable[[bytes], None]
) -> Callable[[], Awaitable[None]]:
    """Call back with what is said on `subject` (wildcards allowed); returns what ends it.

    It goes on over reconnects.
    """

    async def received(message: Msg) -> None:
        heard(message.data)

    subscription = await connection.client.subscribe(subject, cb=received)

    async def end() -> None:
        with contextlib.suppress(nats.errors.Error):  # the connection may be gone
            await subscription.unsubscribe()

    return end
