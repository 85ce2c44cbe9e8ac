"""The states of a decider's keys: where each stands, and how the next one takes its place.

A state rides on the decision about its key, in a header, and stands by itself where there is no
such decision: either way what follows from most events is one message, which costs the server a
small part of what a batch does (ADR 0018). Invariant: whatever is stored of a key is conditional on
the last message in both places together, so that whoever rests on an older state stores nothing.
"""

import asyncio
import json
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace

from inferbus_contracts.base import EventData
from inferbus_contracts.catalog import STATE_CARRIERS, Stream
from inferbus_contracts.envelope import event_id
from inferbus_contracts.events.state import StateStored
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.subjects import subject
from inferbus_contracts.topology import former_state_type, state_filter, state_type
from inferbus_shared.bus.bus import Bus
from inferbus_shared.bus.direct import last_message
from inferbus_shared.bus.messages import Delivered, Outgoing, Received
from inferbus_shared.bus.store import expecting

CARRIED = "inferbus-state"
"""Header of a decision: the state of its key, as the ASCII JSON of a `StateStored`."""

MOST_CARRIED_BYTES = 32 * 1024
"""A larger state stands by itself: the server takes 64 KB of headers."""

MOST_REMEMBERED = 10_000
"""Keys; the one that was stored or read longest ago is forgotten first, and read again."""


@dataclass(frozen=True, slots=True)
class Standing:
    """What is stored of one key."""

    state: StateStored | None
    """None: nothing yet."""
    revision: int
    """Sequence of the last message in both places, on which the next is conditional; 0: none."""


class States:
    """The states of one decider; it remembers what it stored or read last."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._own_type = state_type(bus.service)
        self._former_type = former_state_type(bus.service)
        self._carrier_type = STATE_CARRIERS[bus.service].event_type
        self._remembered: OrderedDict[ObjectKey, Standing] = OrderedDict()
        # A server that comes back with another store counts its sequences anew.
        bus.connection.on_reconnect(self._remembered.clear)

    def remembered(self, key: ObjectKey) -> Standing | None:
        """What this instance stored or read last; another may have stored more since."""
        return self._remembered.get(key)

    async def read(self, key: ObjectKey) -> Standing:
        """What stands there now."""
        places = (self._own_type, self._carrier_type)
        found = await asyncio.gather(*(self._last(type_, key) for type_ in places))
        last = max(found, key=_sequence)
        state = _state_in(last)
        if state is None:
            former = await self._last(self._former_type, key)
            newest_first = sorted([*found, former], key=_sequence, reverse=True)
            state = next(filter(None, map(_state_in, newest_first)), None)
        return self._remember(key, Standing(state, _sequence(last)))

    async def store(
        self,
        key: ObjectKey,
        cause: Received[EventData],
        state: StateStored,
        said: Sequence[Outgoing],
        revision: int,
    ) -> None:
        """Store what follows from an event, whole, if `revision` still is what stands there.

        `said` are timers and decisions, of whatever keys. Raises what `Bus.commit` does; what was
        remembered of the key is forgotten then.
        """
        self._remembered.pop(key, None)
        messages = self._with_state(key, cause, state, said)
        places = {subject(type_, key) for type_ in (self._own_type, self._carrier_type)}
        # On the first of them: nothing that the batch itself stores may count against it.
        first = next(at for at, one in enumerate(messages) if one.subject in places)
        among = state_filter(self._bus.service, key)
        messages[first] = expecting(messages[first], revision, among)
        stored = await self._bus.commit(messages)
        if not stored.duplicate:
            self._remember(key, Standing(state, stored.sequence))

    def _with_state(
        self,
        key: ObjectKey,
        cause: Received[EventData],
        state: StateStored,
        said: Sequence[Outgoing],
    ) -> list[Outgoing]:
        """The messages, the one with the state last: its sequence is the next revision."""
        place = subject(self._carrier_type, key)
        carriers = [one for one in said if one.subject == place]
        carried = json.dumps(state.to_dict(), separators=(",", ":"), sort_keys=True)
        if not carriers or len(carried) > MOST_CARRIED_BYTES:
            stored = self._bus.event(state, key, event_type=self._own_type, cause=cause)
            return [*said, stored]
        carrier = carriers[-1]
        # Whatever follows from an event that was handled before, it is the same id to the server.
        id_ = event_id(self._own_type, key, cause.id)
        headers = carrier.headers | {CARRIED: carried, "Nats-Msg-Id": id_}
        return [*(one for one in said if one is not carrier), replace(carrier, headers=headers)]

    async def _last(self, type_: str, key: ObjectKey) -> Delivered | None:
        return await last_message(self._bus.connection, Stream.DECISIONS, subject(type_, key))

    def _remember(self, key: ObjectKey, standing: Standing) -> Standing:
        self._remembered[key] = standing
        self._remembered.move_to_end(key)
        if len(self._remembered) > MOST_REMEMBERED:
            self._remembered.popitem(last=False)
        return standing


def stored_state(message: Delivered) -> StateStored | None:
    """The state that a message of DECISIONS is, or carries; None for any other message."""
    if CARRIED in message.headers:
        return StateStored.from_json(message.headers[CARRIED])
    if f".{StateStored.event_type}." in message.subject:
        return StateStored.from_json(message.data)
    return None


def _state_in(message: Delivered | None) -> StateStored | None:
    return None if message is None else stored_state(message)


def _sequence(message: Delivered | None) -> int:
    return 0 if message is None else message.sequence
