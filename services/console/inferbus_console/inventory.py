"""What stands on the server, and how far behind its readers are."""

from collections.abc import Iterable
from typing import Any

from inferbus_contracts.api.console import DurableRow, StreamRow
from inferbus_contracts.stream_specs import DurableSpec, StreamSpec
from inferbus_contracts.topology import DEAD_LETTERS, topology
from inferbus_shared.bus.connection import Connection
from inferbus_shared.bus.jetstream import JetStreamError, api


class Inventory:
    """Streams and durables of the topology, those that are there and those that aren't."""

    def __init__(self) -> None:
        self.streams: list[StreamRow] = []
        self.durables: list[DurableRow] = []
        self.missing: list[str] = []
        """What isn't there, with the server's words."""

    @property
    def dead_letters(self) -> int:
        """Events that were put aside."""
        return sum(row.messages for row in self.streams if row.name == DEAD_LETTERS)

    @classmethod
    async def take(cls, connection: Connection, nodes: Iterable[str]) -> "Inventory":
        """Ask the server for everything; raises `ProblemsError` when it is silent."""
        found = cls()
        wanted = topology(nodes)
        for stream in wanted.streams:
            info = await found._ask(
                connection, f"stream {stream.name}", f"STREAM.INFO.{stream.name}"
            )
            if info:
                found.streams.append(stream_row(stream, info))
        for durable in wanted.durables:
            place = f"{durable.stream}.{durable.name}"
            info = await found._ask(connection, f"durable {place}", f"CONSUMER.INFO.{place}")
            if info:
                found.durables.append(durable_row(durable, info))
        return found

    async def _ask(self, connection: Connection, what: str, call: str) -> dict[str, Any] | None:
        try:
            return await api(connection, call)
        except JetStreamError as error:
            self.missing.append(f"{what}: {error.description}")
            return None


def stream_row(stream: StreamSpec, info: dict[str, Any]) -> StreamRow:
    """A stream as the server describes it."""
    limit = int(info["config"].get("max_bytes", -1))
    return StreamRow(
        name=stream.name,
        messages=int(info["state"]["messages"]),
        bytes=int(info["state"]["bytes"]),
        max_bytes=limit if limit > 0 else None,
    )


def durable_row(durable: DurableSpec, info: dict[str, Any]) -> DurableRow:
    """A durable as the server describes it."""
    return DurableRow(
        name=durable.name,
        stream=durable.stream,
        service=durable.service.value,
        waiting=int(info["num_pending"]),
        in_flight=int(info["num_ack_pending"]),
        redelivered=int(info["num_redelivered"]),
    )
