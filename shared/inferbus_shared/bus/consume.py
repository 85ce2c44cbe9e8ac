"""Durable consumption and request handling on FastStream.

FastStream runs the handlers: dispatch, middlewares, graceful stop. What it would get wrong on
JetStream is replaced by what this package does: messages come by long polls of durables that the
provisioner made, their fate is decided in `fate`, and a durable that is missing is reported instead
of being created or polled in a hot loop.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, TypeVar

from faststream import AckPolicy
from faststream.message import StreamMessage
from faststream.nats import JStream, NatsBroker, PullSub
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js import JetStreamContext
from pydantic import ValidationError

from inferbus_contracts.api.objects import Reply
from inferbus_contracts.base import EventData
from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError, shorten
from inferbus_contracts.stream_specs import DurableSpec
from inferbus_shared.bus.bus import Bus
from inferbus_shared.bus.fate import Again, dead_letter, fate_of
from inferbus_shared.bus.messages import Received, delivered
from inferbus_shared.bus.metrics import BusMetrics, type_label
from inferbus_shared.bus.pull import ConsumerGoneError, LongPoll
from inferbus_shared.bus.store import store

log = logging.getLogger("inferbus.bus")

RequestT = TypeVar("RequestT", bound=EventData)
EventHandler = Callable[[Received[EventData], Msg], Awaitable[None]]

GRACE_SECONDS = 10.0
MISSING_SECONDS = 2.0
"""How long to wait before a missing durable is looked for again."""


class BusBroker(NatsBroker):
    """A FastStream broker on the connection that the service has already."""

    def __init__(self, bus: Bus, metrics: BusMetrics) -> None:
        super().__init__(
            apply_types=False, logger=None, graceful_timeout=GRACE_SECONDS, decoder=_raw_message
        )
        self._bus = bus
        self._metrics = metrics
        self.missing: dict[str, str] = {}
        """Durables that were just refused and wait to be asked for again, with the reason."""

    async def _connect(self) -> Client:
        client = self._bus.connection.client
        self.config.connect(client)
        bound = _BoundJetStream(client, self)
        self.config.connection_state.connect(client, bound)
        return client

    def handle_durable(self, durable: DurableSpec, handler: EventHandler) -> None:
        """Handle the events of a durable one by one, in the order of the log."""

        async def handle(message: Msg) -> None:
            started = time.perf_counter()
            outcome = "done"
            try:
                await handler(await self._bus.read(delivered(message)), message)
            except Exception as error:
                outcome = await self._settle(durable, message, error)
            else:
                await message.ack()
            self._metrics.handled(type_label(message.headers), outcome, started)

        subscriber = self.subscriber(
            durable.filter,
            stream=JStream(durable.stream, declare=False),
            durable=durable.name,
            pull_sub=PullSub(batch_size=1),
            ack_policy=AckPolicy.MANUAL,
        )
        subscriber(handle)

    def handle_requests(
        self,
        subject: str,
        request: type[RequestT],
        handler: Callable[[RequestT], Awaitable[Reply]],
    ) -> None:
        """Answer requests; any instance of the service may take each."""

        async def handle(message: Msg) -> bytes:
            started = time.perf_counter()
            outcome = "done"
            try:
                reply = await handler(request.from_json(message.data))
            except ProblemsError as error:
                reply, outcome = Reply(problems=list(error.problems)), "refused"
            except ValidationError as error:
                reply, outcome = Reply(problems=_misfits(error)), "refused"
            except Exception as error:
                log.exception("a request could not be handled", extra={"subject": subject})
                reply, outcome = Reply(problems=[_bug(subject, error)]), "failed"
            self._metrics.handled(subject, outcome, started)
            return reply.to_json()

        self.subscriber(subject, queue=self._bus.service.value)(handle)

    async def _settle(self, durable: DurableSpec, message: Msg, error: Exception) -> str:
        raw = delivered(message)
        fate = fate_of(error, raw.deliveries)
        if isinstance(fate, Again):
            log.info(
                "event will be tried again",
                extra={"event": raw.headers.get("ce-id"), "reason": str(error)},
            )
            await message.nak(delay=fate.delay_seconds)
            return "retried"
        log.error(
            "event goes to the dead letters",
            extra={"event": raw.headers.get("ce-id"), "reason": fate.reason},
        )
        letter = dead_letter(self._bus.service, raw, fate.reason, durable.name)
        await store(self._bus.connection, letter)
        await message.term()
        return "dead"


class _BoundJetStream(JetStreamContext):
    """Subscribes to durables that exist; creates none."""

    def __init__(self, client: Client, broker: BusBroker) -> None:
        super().__init__(client)
        self._broker = broker

    async def pull_subscribe(self, *_: Any, **options: Any) -> Any:
        """The long poll of a durable, in the shape FastStream's pull loop expects."""
        poll = LongPoll(self._broker._bus.connection, options["stream"], options["durable"])
        return _DurablePoll(poll, options["durable"], self._broker)


class _DurablePoll:
    def __init__(self, poll: LongPoll, durable: str, broker: BusBroker) -> None:
        self._poll = poll
        self._durable = durable
        self._broker = broker

    async def fetch(self, batch: int = 1, timeout: float | None = None) -> list[Msg]:
        """One message; an empty list after a pause when the durable is missing."""
        del batch, timeout
        try:
            message = await self._poll.next()
        except ConsumerGoneError as gone:
            self._broker.missing[self._durable] = str(gone)
            log.error("durable is missing", extra={"durable": self._durable, "reason": str(gone)})
            await asyncio.sleep(MISSING_SECONDS)
            # A durable with nothing to deliver is silent, so only a new refusal means missing.
            self._broker.missing.pop(self._durable, None)
            return []
        return [message]

    async def unsubscribe(self) -> None:
        """Let go of the durable."""
        with suppress(Exception):  # the connection may be gone; the server notices by itself
            await self._poll.close()


async def _raw_message(message: StreamMessage[Msg], _: object) -> Msg:
    return message.raw_message


def _misfits(error: ValidationError) -> list[Problem]:
    return [
        Problem(
            code=ErrorCode.WRONG_TYPE,
            message=str(item["msg"]),
            field=".".join(map(str, item["loc"])),
            value=shorten(item["input"]),
        )
        for item in error.errors()
    ]


def _bug(subject: str, error: Exception) -> Problem:
    return Problem(
        code=ErrorCode.PROCESS_FAILED,
        message=f"{subject} failed inside the service: {type(error).__name__}: {error}",
        remedy="the service's log has the traceback; please report it",
    )
