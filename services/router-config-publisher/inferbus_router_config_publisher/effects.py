"""The log of parts: what was published is read back from it, and new batches are stored in it.

Invariant: a batch is stored only directly behind the position it was made for. So of two instances
that both believe to be the active one, each writes whole tables with revisions of their own or
nothing.
"""

from collections.abc import Mapping
from dataclasses import replace

from inferbus_contracts.base import EventData
from inferbus_contracts.catalog import EVENTS
from inferbus_contracts.envelope import event_id
from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_contracts.events.route import RoutePublished
from inferbus_contracts.keys import ObjectKey
from inferbus_router_config_publisher.policy_parts import Batch, PublishedTable
from inferbus_shared.bus.bus import Bus
from inferbus_shared.bus.jetstream import JetStreamError, api
from inferbus_shared.bus.messages import Outgoing, Received

_EXPECTED_POSITION = "Nats-Expected-Last-Sequence"
"""Of the whole stream, not of a subject: any other write in between is noticed."""

_TYPE = RoutePublished.event_type

Causes = Mapping[ObjectKey, Received[EventData]]


class RoutesLog:
    """The stream of parts, which only this service writes."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._stream = EVENTS[_TYPE].stream

    async def load(self) -> PublishedTable:
        """What is published. Raises `ProblemsError` when the bus can't be asked."""
        position, _ = await self._position()
        parts: dict[ObjectKey, RoutePublished] = {}
        async for message in self._bus.follow(_TYPE).snapshot():
            position = max(position, message.sequence)
            event = await self._bus.readable(message)
            if event is None:
                continue
            assert isinstance(event.data, RoutePublished)
            parts[event.key] = event.data
        return PublishedTable.read(parts.items(), position)

    async def store(self, batch: Batch, causes: Causes) -> None:
        """Store a batch, all of it or nothing.

        Raises `WrongSequenceError` when something else was stored since `load`, `ProblemsError`
        when the bus refuses it or stays silent: then it may be stored or not.
        """
        position = batch.table.position - len(batch.messages)
        messages = [
            self._message(key, data, position, causes.get(key)) for key, data in batch.messages
        ]
        headers = messages[0].headers | {_EXPECTED_POSITION: str(position)}
        await self._bus.commit([replace(messages[0], headers=headers), *messages[1:]])

    def _message(
        self, key: ObjectKey, data: RoutePublished, position: int, cause: Received[EventData] | None
    ) -> Outgoing:
        """The position in the id lets a part go back to what it was without being a repetition."""
        id_ = event_id(_TYPE, key, f"{data.digest}|{position}")
        return self._bus.event(data, key, id=id_, cause=cause)

    async def is_as(self, table: PublishedTable) -> bool:
        """Whether the log ends where this table does and holds no fewer messages."""
        position, messages = await self._position()
        return position == table.position and messages >= len(table.keys())

    async def _position(self) -> tuple[int, int]:
        """Where the log ends, and how many messages it holds."""
        try:
            info = await api(self._bus.connection, f"STREAM.INFO.{self._stream}")
        except JetStreamError as error:
            raise ProblemsError(_unknown_position(error)) from error
        return int(info["state"]["last_seq"]), int(info["state"]["messages"])


def _unknown_position(error: JetStreamError) -> Problem:
    return Problem(
        code=ErrorCode.TOPOLOGY_MISSING,
        message=f"the bus doesn't tell where its log of routes ends: {error}",
        remedy="run `inferbus provision` against this NATS server",
    )
