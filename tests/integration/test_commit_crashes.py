"""A crash at any step between an event and its acknowledgement ends as if there had been none."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest
from nats.aio.msg import Msg

from inferbus_contracts.services import Service
from inferbus_shared.bus.bus import Bus
from inferbus_shared.bus.connection import Connection, Headers
from inferbus_shared.bus.messages import Delivered
from inferbus_shared.bus.replies import LostRequestError
from inferbus_shared.bus.states import CARRIED
from inferbus_shared.bus.store import EXPECTED_SEQUENCE
from inferbus_shared.clock import SystemClock, real_now_ms
from tests.support.counting import (
    INPUTS,
    Timers,
    autoscaler,
    counting,
    decisions,
    deliver,
    handle,
    in_an_hour,
    no_timers,
    sampled,
)
from tests.support.eventually import eventually
from tests.support.nats import NatsServer, running_server

Send = Callable[[], Awaitable[Msg]]
Fault = Callable[[NatsServer, Connection, Send], Awaitable[Msg]]


async def lost_request(_server: NatsServer, _connection: Connection, _send: Send) -> Msg:
    raise LostRequestError("cut before it was sent")


async def lost_answer(_server: NatsServer, _connection: Connection, send: Send) -> Msg:
    await send()
    raise LostRequestError("cut before the answer came")


async def server_killed(server: NatsServer, connection: Connection, send: Send) -> Msg:
    server.kill()
    await eventually(lambda: not connection.connected)
    server.start()
    await eventually(lambda: connection.connected)
    return await send()


def is_read(request_subject: str, _: Headers) -> bool:
    return request_subject.startswith("$JS.API.DIRECT.GET.")


def is_commit(_: str, headers: Headers) -> bool:
    return EXPECTED_SEQUENCE in (headers or {})


class FaultyConnection(Connection):
    """Meets one fault, at the first request that it is meant for."""

    def __init__(
        self, server: NatsServer, fault: Fault, meant: Callable[[str, Headers], bool]
    ) -> None:
        super().__init__(Service.AUTOSCALER, server.settings())
        self._server = server
        self._meant = meant
        self.fault: Fault | None = fault

    async def request(
        self, subject: str, body: bytes = b"", *, timeout: float, headers: Headers = None
    ) -> Msg:
        def send() -> Awaitable[Msg]:
            return super(FaultyConnection, self).request(
                subject, body, timeout=timeout, headers=headers
            )

        if self.fault is None or not self._meant(subject, headers):
            return await send()
        fault, self.fault = self.fault, None
        return await fault(self._server, self, send)


def said(log: Sequence[Delivered]) -> list[tuple[Any, ...]]:
    """What the log says, whenever and by whom it was said."""
    names = ("ce-id", "ce-causationid", "ce-correlationid", "Nats-Schedule", CARRIED)
    return [
        (message.subject, message.sequence, message.data, *map(message.headers.get, names))
        for message in log
    ]


COMMITS = pytest.mark.parametrize("timers", [no_timers, in_an_hour], ids=["message", "batch"])
"""What a commit is stored as: with a timer, it is more than one message."""


async def undisturbed(inputs_ms: int, timers: Timers) -> list[tuple[Any, ...]]:
    """What the log says where nothing goes wrong."""
    with running_server() as server:
        await server.provision()
        events = await sampled(server, *INPUTS, time_ms=inputs_ms)
        async with autoscaler(server, timers) as decider:
            for event in events:
                assert await deliver(decider, event) == 1
        return said(await decisions(server))


@pytest.mark.parametrize("fault", [lost_request, lost_answer, server_killed])
@pytest.mark.parametrize("meant", [is_read, is_commit])
@COMMITS
async def test_after_a_crash_at_any_step_the_log_is_as_without(
    nats_server: NatsServer, fault: Fault, meant: Callable[[str, Headers], bool], timers: Timers
) -> None:
    inputs_ms = real_now_ms()
    events = await sampled(nats_server, *INPUTS, time_ms=inputs_ms)
    connection = FaultyConnection(nats_server, fault, meant)
    await connection.open()
    try:
        decider = counting(Bus(connection, SystemClock()), timers)
        for event in events:
            await deliver(decider, event)
    finally:
        await connection.close()
    assert connection.fault is None
    assert said(await decisions(nats_server)) == await undisturbed(inputs_ms, timers)


@COMMITS
async def test_after_a_crash_before_the_acknowledgement_the_log_is_as_without(
    nats_server: NatsServer, timers: Timers
) -> None:
    inputs_ms = real_now_ms()
    events = await sampled(nats_server, *INPUTS, time_ms=inputs_ms)
    for event in events:
        for deliveries in (1, 2):
            async with autoscaler(nats_server, timers) as decider:
                await handle(decider, event, deliveries)
    assert said(await decisions(nats_server)) == await undisturbed(inputs_ms, timers)
