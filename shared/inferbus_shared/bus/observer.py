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
        stored = await self._bus.publish(message)
        if not stored.duplicate:
            self._unseen[key] = id_
        self._last[key] = _Last(content, id_)
        self._bodies[key] = data
        return stored

    async def _read(self, message: Delivered) -> None:
        event = await self._bus.readable(message)
        if event is not None:
            self._remember(event)

    def _remember(self, event: Received[EventData]) -> None:
        own = self._unseen.get(event.key)
        if own is not None and own != event.id:
            return  # older than what this instance wrote last, which is still on its way
        self._unseen.pop(event.key, None)
        self._last[event.key] = _Last(digest(event.data.to_dict()), event.id)
        self._bodies[event.key] = event.data
