"""What happens on which fact: it is folded, and whoever publishes what follows is told.

Invariant: nothing is waited for here, so that facts are taken as fast as they come, whatever is
being published meanwhile.
"""

from inferbus_contracts.base import EventData
from inferbus_contracts.events.spec import SpecChanged
from inferbus_contracts.events.workload import WorkloadObserved
from inferbus_router_config_publisher.core import Affected, Join
from inferbus_router_config_publisher.publication import Publisher
from inferbus_router_config_publisher.resolution import Resolver
from inferbus_shared.bus.messages import Received

FOLDED = (SpecChanged.event_type, WorkloadObserved.event_type)
"""The facts that the table is made from."""


class FactHandler:
    """Takes facts one by one."""

    def __init__(self, join: Join, publisher: Publisher, resolver: Resolver) -> None:
        self._join = join
        self._publisher = publisher
        self._resolver = resolver

    def take(self, event: Received[EventData]) -> None:
        """Fold one fact."""
        affected = self._fold(event)
        self._publisher.changed(affected.parts, event, urgent=affected.urgent)
        self._resolver.changed(affected.conditions, event)

    def _fold(self, event: Received[EventData]) -> Affected:
        if isinstance(event.data, SpecChanged):
            return self._join.fold_object(event.key, event.data)
        assert isinstance(event.data, WorkloadObserved)
        return self._join.fold_workload(event.key, event.data)
