"""Facts that are written only when they differ from the last one on the bus.

An observer remembers, per key, the digest and id of the last fact, read from the bus itself: ten
restarts on a quiet system add nothing, and A, B, A are three facts. Facts too old for the history
are read from the stream of last values first; that one may lag behind by a moment, the history
never does.
"""

from dataclasses import dataclass

from inferbus_contracts.base import EventData
from inferbus_contracts.canonical import digest
from inferbus_contracts.envelope import observation_id
from inferbus_contracts.keys import ObjectKey
from inferbus_shared.bus.bus import Bus
from inferbus_shared.bus.follow import Start
from inferbus_shared.bus.messages import Delivered, Received
from inferbus_shared.bus.store import Stored


@dataclass(frozen=True, slots=True)
class _Last:
    digest: str
    id: str


@dataclass(frozen=True, slots=True)
class _Own:
    """What this instance wrote."""

    key: ObjectKey
    last: _Last
    data: EventData


class Observer:
    """The facts of one type that this service writes."""

    def __init__(self, bus: Bus, event_type: str) -> None:
        self._bus = bus
        self._type = event_type
        self._oldest = bus.follow(event_type)
        self._history = bus.follow(event_type, Start.last_per_subject())
        self._last: dict[ObjectKey, _Last] = {}
        self._bodies: dict[ObjectKey, EventData] = {}
        self._unseen: dict[ObjectKey, str] = {}
        """Id of what this instance wrote last of a key, while it is on its way back here."""
        self._own: dict[str, _Own] = {}
        """All that is on its way back, by id."""

    async def run(self) -> None:
        """Follow the bus; must run beside `observe`."""
        async for message in self._oldest.snapshot():
            await self._read(message)
        async for message in self._history.messages():
            await self._read(message)

    async def ready(self) -> None:
        """Wait until the last facts on the bus are known."""
        await self._history.caught_up()

    def last(self, key: ObjectKey) -> EventData | None:
        """The last fact of a key, as far as this instance has seen."""
        return self._bodies.get(key)

    def keys(self) -> tuple[ObjectKey, ...]:
        """Every key that has a fact."""
        return tuple(self._bodies)

    async def observe(
        self,
        key: ObjectKey,
        uid: str,
        data: EventData,
        *,
        cause: Received[EventData] | None = None,
        causation_id: str = "",
    ) -> Stored | None:
        """Write the fact unless the last one of the key says the same; None when it does.

        What it follows from is an event (`cause`), or the id of one.

        Raises `ProblemsError` when it can't be stored.
        """
        await self.ready()
        content = digest(data.to_dict())
        last = self._last.get(key)
        if last is not None and last.digest == content:
            return None
        id_ = observation_id(self._type, key, uid, content, last.id if last else "")
        message = self._bus.event(
            data, key, event_type=self._type, id=id_, cause=cause, causation_id=causation_id
        )
        # It may come back before the answer to its storing does, and others after it.
        self._unseen[key] = id_
        own = self._own[id_] = _Own(key, _Last(content, id_), data)
        try:
            stored = await self._bus.publish(message)
        except BaseException:
            self._forget(own)
            raise
        if stored.duplicate:
            self._forget(own)
        if stored.duplicate or id_ in self._own:
            self._take(own)
        return stored

    def _take(self, own: _Own) -> None:
        self._last[own.key] = own.last
        self._bodies[own.key] = own.data

    def _forget(self, own: _Own) -> None:
        """It isn't on its way back here."""
        self._own.pop(own.last.id, None)
        if self._unseen.get(own.key) == own.last.id:
            del self._unseen[own.key]

    async def _read(self, message: Delivered) -> None:
        own = self._own.get(message.headers.get("Nats-Msg-Id", ""))
        if own is not None:
            if self._unseen.get(own.key) == own.last.id:
                self._take(own)
            self._forget(own)
            return
        event = await self._bus.readable(message)
        if event is not None:
            self._remember(event)

    def _remember(self, event: Received[EventData]) -> None:
        if event.key in self._unseen:
            return  # older than what this instance wrote last, which is still on its way
        self._last[event.key] = _Last(digest(event.data.to_dict()), event.id)
        self._bodies[event.key] = event.data
