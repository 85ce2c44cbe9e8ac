"""What people ordered about scaling, as the one who enforces it must know it.

Orders are folded as they arrive, and read from the log once more where they matter: what was folded
may be a moment behind. Invariant: after `confirm`, everything that stood in the log when it was
called is known.
"""

import asyncio

from inferbus_contracts.base import EventData
from inferbus_contracts.events.control import ControlFrozen, ControlThawed, Order
from inferbus_contracts.events.spec import SpecChanged
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.orders import Freeze, Orders, scopes_of
from inferbus_contracts.scaling.settlement import PolicyObjects
from inferbus_shared.bus.bus import Bus
from inferbus_shared.bus.messages import Received

_READ_AGAIN = (ControlFrozen.event_type, ControlThawed.event_type)


class OrderBook:
    """Orders, and the policies whose scopes a target lies in."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self.orders = Orders()
        self.policies = PolicyObjects()

    def take(self, event: Received[EventData]) -> bool:
        """Fold one fact in; whether it was an order."""
        if isinstance(event.data, SpecChanged):
            self.policies.take(event.key, event.data)
        if not isinstance(event.data, Order):
            return False
        self.orders.take(event.key, event.data, event.time_ms)
        return True

    def freeze(self, target: ObjectKey, now_ms: int) -> Freeze | None:
        """The widest freeze in force for a target, as far as was folded."""
        if not self.orders.any_freeze:
            return None
        return self.orders.freeze(target, now_ms, self.policies_of(target))

    async def confirm(self, target: ObjectKey) -> None:
        """Fold in what the log says now of a target; raises `ProblemsError` when it can't be read.

        The log forgets old orders, which were folded long ago; it never lacks a new one.
        """
        policies = self.policies_of(target)
        scopes = {scope for key in self.decided_with(target) for scope in scopes_of(key, policies)}
        found = await asyncio.gather(
            *(self._bus.last(type_, scope) for scope in scopes for type_ in _READ_AGAIN)
        )
        for event in found:
            if event is not None:
                self.take(event)

    def decided_with(self, target: ObjectKey) -> tuple[ObjectKey, ...]:
        """The target, and the roles that are decided about together with it (ADR 0019)."""
        intent = self.policies.settled.owners.get(target)
        if intent is None or not intent.joint:
            return (target,)
        return (target, *(one.key for one in intent.targets if one.key != target))

    def policies_of(self, target: ObjectKey) -> tuple[ObjectKey, ...]:
        """The binding and policy that scale a target."""
        return self.policies.settled.policies_of(target)
