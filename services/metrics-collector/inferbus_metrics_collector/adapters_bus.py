"""Samples, and what is wrong with them, on the bus."""

from inferbus_contracts.base import EventData
from inferbus_contracts.events.metrics import MetricsAssessed
from inferbus_contracts.keys import ObjectKey
from inferbus_shared.bus.bus import Bus
from inferbus_shared.bus.observer import Observer


class BusSink:
    """Stores samples; storing one twice under its id is the same as once."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus

    async def emit(self, key: ObjectKey, data: EventData, event_id: str) -> None:
        """Store one sample; raises `ProblemsError`."""
        await self._bus.publish(self._bus.event(data, key, id=event_id))


class BusAssessments:
    """Assessments as facts, each only when it differs from the last on the bus."""

    def __init__(self, observer: Observer) -> None:
        """`observer` is of `metrics.assessed` and runs."""
        self._observer = observer

    def told(self) -> tuple[ObjectKey, ...]:
        """The policies of which something was ever told."""
        return self._observer.keys()

    async def tell(self, policy: ObjectKey, data: MetricsAssessed) -> None:
        """Store it unless it is what was told last; raises `ProblemsError`."""
        await self._observer.observe(policy, data.policy_uid, data)

    async def take_back(self, policy: ObjectKey) -> None:
        """The policy is gone, and with it its problems; raises `ProblemsError`."""
        last = self._observer.last(policy)
        if isinstance(last, MetricsAssessed):
            await self.tell(policy, MetricsAssessed(policy_uid=last.policy_uid))
