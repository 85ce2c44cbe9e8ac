"""The router's outside on the bus: the table from ROUTES, demand and acknowledgements back.

Invariant: while the bus can't be reached the router serves by the last table it has; demand that
can't be told then is dropped, oldest first, and counted.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from zlib import crc32

from inferbus_contracts.base import EventData
from inferbus_contracts.envelope import event_id
from inferbus_contracts.errors import ProblemsError
from inferbus_contracts.events.demand import DemandObserved, DemandPending, DemandSummed
from inferbus_contracts.events.route import RouteAcknowledged, RoutePublished
from inferbus_contracts.keys import NO_NAMESPACE, ObjectKey
from inferbus_router.intake import Intake
from inferbus_router.ports import TableSink
from inferbus_shared.bus.bus import Bus
from inferbus_shared.bus.follow import Follower
from inferbus_shared.bus.messages import Delivered, Outgoing

log = logging.getLogger("inferbus.router")

ROUTER_KIND = "Router"
QUEUE_LENGTH = 1000
"""Events that wait for the bus at most."""
HEARTBEAT_SECONDS = 1.0
"""How often the server shows that it still has something to say to this router, real time."""
SLOT_MS = 1_000
"""A router acknowledges once in that time at most, real time, and each at a moment of its own: a
hundred of them at once would hold up the very change they acknowledge.
"""


class BusTable:
    """A `TableSource`: the parts in the ROUTES stream, as they are and as they change."""

    def __init__(self, bus: Bus, sayings: "Sayings") -> None:
        self._bus = bus
        self._sayings = sayings
        self._lag_ms = 0
        self._is_served = False
        """Something is that wasn't acknowledged yet."""
        self._slot: asyncio.TimerHandle | None = None
        self.end_slot: Callable[[], None] = lambda: None
        """Look at the table, and acknowledge it; called when this router's turn in the second
        comes.
        """

    async def run(self, sink: TableSink) -> None:
        """Feed the sink: the whole table at once, then change by change."""
        intake = Intake(sink)
        follower = self._bus.follow(
            RoutePublished.event_type,
            on_restart=intake.begin_anew,
            heartbeat_seconds=HEARTBEAT_SECONDS,
        )

        def end_slot() -> None:
            if intake.look(_now_ms()):
                log.warning("the table isn't whole; reading it again")
                follower.restart()
            self._acknowledge(intake, sink)
            self._await_slot(intake)

        self.end_slot = end_slot
        ended = asyncio.ensure_future(self._end_of_snapshot(follower, intake))
        try:
            async for message in follower.messages():
                part = await self._read(message)
                is_new = follower.is_caught_up
                if intake.take(part, more=message.pending > 0, now_ms=_now_ms()):
                    self._served(message, is_new=is_new)
                if self._slot is None:
                    self._await_slot(intake)
        finally:
            ended.cancel()
            if self._slot is not None:
                self._slot.cancel()

    async def _end_of_snapshot(self, follower: Follower, intake: Intake) -> None:
        """Where the table is empty no message tells of its end."""
        await follower.caught_up()
        intake.nothing_to_read()

    async def _read(self, message: Delivered) -> tuple[ObjectKey, RoutePublished] | None:
        """A part; None for one that can't be used: the others still are."""
        event = await self._bus.readable(message)
        if event is None:
            return None
        assert isinstance(event.data, RoutePublished)
        return event.key, event.data

    def _served(self, message: Delivered, *, is_new: bool) -> None:
        """What stood there at the start had nobody here to serve it before."""
        self._is_served = True
        if is_new:
            stored_ms = self._bus.clock.anchor.to_virtual(message.stamp_ms)
            self._lag_ms = max(self._lag_ms, self._bus.clock.now_ms() - stored_ms)

    def _await_slot(self, intake: Intake) -> None:
        """When this router's turn comes, if there is something to look at then."""
        self._slot = None
        if not intake.is_settled:
            wait_ms = (self._sayings.slot_ms - _now_ms()) % SLOT_MS or SLOT_MS
            self._slot = asyncio.get_running_loop().call_later(wait_ms / 1000, self.end_slot)

    def _acknowledge(self, intake: Intake, sink: TableSink) -> None:
        """All changes since the last time together, with the longest lag among them."""
        if not self._is_served:
            return
        self._is_served = False
        lag_ms, self._lag_ms = self._lag_ms, 0
        self._sayings.acknowledge(
            RouteAcknowledged(
                revision=intake.revision, table_digest=sink.table_digest, lag_ms=lag_ms
            ),
            self._bus.clock.now_ms(),
        )


def _now_ms() -> int:
    return int(asyncio.get_running_loop().time() * 1000)


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
    def slot_ms(self) -> int:
        """This router's own moment in every `SLOT_MS`."""
        return crc32(self._router.encode()) % SLOT_MS

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
            acknowledged, moment_ms = self._acknowledged
            self.acknowledge(acknowledged, moment_ms)

    def acknowledge(self, acknowledged: RouteAcknowledged, moment_ms: int) -> None:
        """A table is served since that moment, virtual milliseconds."""
        self._acknowledged = acknowledged, moment_ms
        lacking = self._without_credential or None
        data = acknowledged.model_copy(update={"without_credential": lacking})
        table = f"{data.revision}|{data.table_digest}|{moment_ms}"
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
