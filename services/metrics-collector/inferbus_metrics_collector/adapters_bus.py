"""Samples on the bus."""

from inferbus_contracts.base import EventData
from inferbus_contracts.keys import ObjectKey
from inferbus_shared.bus.bus import Bus


class BusSink:
    """Stores samples; storing one twice under its id is the same as once."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus

    async def emit(self, key: ObjectKey, data: EventData, event_id: str) -> None:
        """Store one sample; raises `ProblemsError`."""
        await self._bus.publish(self._bus.event(data, key, id=event_id))
