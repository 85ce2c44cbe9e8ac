"""The router's outside on the bus: the table from ROUTES, demand and acknowledgements back.

Invariant: while the bus can't be reached the router serves by the last table it has; demand that
can't be told then is dropped, oldest first, and counted.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Sequence

from inferbus_contracts.base import EventData
from inferbus_contracts.envelope import event_id
from inferbus_contracts.errors import ProblemsError
from inferbus_contracts.events.demand import DemandObserved, DemandPending, DemandSummed
from inferbus_contracts.events.route import RouteAcknowledged, RoutePublished
from inferbus_contracts.keys import NO_NAMESPACE, ObjectKey
from inferbus_router.ports import TableSink
from inferbus_shared.bus.bus import Bus
from inferbus_shared.bus.messages import Delivered, Outgoing

log = logging.getLogger("inferbus.router")

ROUTER_KIND = "Router"
QUEUE_LENGTH = 1000
"""Events that wait for the bus at most."""


class BusTable:
    """A `TableSource`: the parts in the ROUTES stream, as they are and as they change."""

    def __init__(self, bus: Bus, sayings: "Sayings") -> None:
        self._bus = bus
        self._sayings = sayings
        self._follower = bus.follow(RoutePublished.event_type)

    async def run(self, sink: TableSink) -> None:
        """Feed the sink: the whole table at once, then part by part."""
        ended = asyncio.ensure_future(self._end_of_snapshot(sink))
        parts: list[tuple[ObjectKey, RoutePublished]] = []
        try:
            async for message in self._follower.messages():
                part = await self._read(message)
                if part is not None:
                    parts.append(part)
                if message.pending > 0 and not self._follower.is_caught_up:
                    continue
                sink.apply(parts)
                self._acknowledge(parts, message)
                parts = []
        finally:
            ended.cancel()

    async def _end_of_snapshot(self, sink: TableSink) -> None:
        """Also where the table is empty: no message tells of that."""
        await self._follower.caught_up()
        sink.snapshot_ended()

    async def _read(self, message: Delivered) -> tuple[ObjectKey, RoutePublished] | None:
        """A part; None for one that can't be used: the others still are."""
        event = await self._bus.readable(message)
        if event is None:
            return None
        assert isinstance(event.data, RoutePublished)
        return event.key, event.data

    def _acknowledge(
        self, parts: list[tuple[ObjectKey, RoutePublished]], message: Delivered
    ) -> None:
        if not parts:
            return
        last = parts[-1][1]
        stored_ms = self._bus.clock.anchor.to_virtual(message.stamp_ms)
        self._sayings.acknowledge(
            RouteAcknowledged(
                revision=last.revision,
                table_digest=last.table_digest,
                lag_ms=max(self._bus.clock.now_ms() - stored_ms, 0),
            ),
            message.sequence,
        )


class Sayings:
    """A `DemandSink`, and whatever else the router tells: queued, and stored one by one."""

    def __init__(self, bus: Bus, router: str) -> None:
        self._bus = bus
        self._router = router
        self._without_credential: list[str] = []
        self._acknowledged: tuple[RouteAcknowledged, int] | None = None
        """The last one, and the message it is about."""
        self._queue: deque[Outgoing] = deque(maxlen=QUEUE_LENGTH)
        self._filled = asyncio.Event()
        self.dropped = 0

    @property
    def own_key(self) -> ObjectKey:
        """What events about this router are keyed by."""
        return ObjectKey(ROUTER_KIND, NO_NAMESPACE, self._router)

    def observed(self, target: ObjectKey, data: DemandObserved) -> None:
        """One second of traffic to a target."""
        self.say(data, target, f"{data.interval_start_ms}|{data.interval_ms}")

    def summed(self, target: ObjectKey, data: DemandSummed) -> None:
        """Ten seconds of it."""
        self.say(data, target, f"{data.interval_start_ms}|{data.interval_ms}")

    def pending(self, target: ObjectKey, data: DemandPending) -> None:
        """Requests wait because the target has no replica."""
        self.say(data, target, f"{data.model}|{data.since_ms}|{self._bus.clock.now_ms()}")

    def without_credential(self, providers: Sequence[ObjectKey]) -> None:
        """The providers whose credential can't be read: stands in every acknowledgement."""
        self._without_credential = [str(provider) for provider in providers]
        if self._acknowledged is not None:
            acknowledged, sequence = self._acknowledged
            self.acknowledge(acknowledged, sequence)

    def acknowledge(self, acknowledged: RouteAcknowledged, sequence: int) -> None:
        """The table up to a message of the stream is served."""
        self._acknowledged = acknowledged, sequence
        lacking = self._without_credential or None
        data = acknowledged.model_copy(update={"without_credential": lacking})
        table = f"{data.revision}|{data.table_digest}|{sequence}"
        self.say(data, self.own_key, "|".join((table, *self._without_credential)))

    def say(self, data: EventData, key: ObjectKey, cause: str) -> None:
        """Queue one event; `cause` tells it from every other of its type and key."""
        id_ = event_id(data.event_type, key, f"{self._router}|{cause}")
        if len(self._queue) == QUEUE_LENGTH:
            self.dropped += 1
        self._queue.append(self._bus.event(data, key, id=id_))
        self._filled.set()

    async def run(self) -> None:
        """Store what is queued until cancelled."""
        while True:
            await self._filled.wait()
            self._filled.clear()
            while self._queue:
                message = self._queue.popleft()
                try:
                    await self._bus.publish(message)
                except ProblemsError as error:
                    self.dropped += 1
                    log.warning("the bus didn't take an event", extra={"problem": str(error)})
