"""Listening to the bus as it speaks, without touching any consumer."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

from nats.aio.msg import Msg

from inferbus_shared.bus.connection import Connection
from inferbus_shared.bus.messages import Delivered
from inferbus_shared.clock import real_now_ms


async def tap(connection: Connection, subject: str) -> AsyncIterator[Delivered]:
    """Every message on `subject` (wildcards allowed) from now on; it has no stream or sequence."""
    arrived: asyncio.Queue[Msg] = asyncio.Queue()
    subscription = await connection.client.subscribe(subject, cb=arrived.put)
    try:
        while True:
            message = await arrived.get()
            yield Delivered(
                subject=message.subject,
                headers=message.headers or {},
                data=message.data,
                stream="",
                sequence=0,
                stamp_ms=real_now_ms(),
            )
    finally:
        with contextlib.suppress(Exception):  # the connection may be gone
            await subscription.unsubscribe()
