"""The report of `status`. Pure."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from inferbus_cli.platform.overview import ProcessRow
from inferbus_cli.tables import aligned
from inferbus_cli.units import age, number, size
from inferbus_contracts.api.console import DurableRow, InventoryReply, StreamRow
from inferbus_contracts.errors import Problem

RUNNING_STATES = frozenset({"running", "ready"})


def process_table(rows: Sequence[ProcessRow]) -> str:
    """One line per process."""
    titles = ("PROCESS", "STATE", "PID", "RESTARTS", "UPTIME", "MEMORY")
    return aligned(titles, [_process(row) for row in rows])


def _process(row: ProcessRow) -> tuple[str, ...]:
    uptime_ms = None if row.uptime_seconds is None else round(row.uptime_seconds * 1000)
    pid = "" if row.pid is None else str(row.pid)
    return row.name, row.state, pid, str(row.restarts), age(uptime_ms), size(row.memory_bytes)


def bus_tables(reply: InventoryReply, *, wide: bool) -> str:
    """Streams, readers and routers."""
    streams = [
        (row.name, str(row.messages), size(row.bytes), size(row.max_bytes), _share(row))
        for row in reply.streams
    ]
    parts = [
        aligned(("STREAM", "MESSAGES", "SIZE", "LIMIT", "USED"), streams),
        aligned(("READER", "WAITING", "IN FLIGHT", "REDELIVERED"), _readers(reply.durables, wide)),
    ]
    if reply.routers:
        titles = ("ROUTER", "REVISION", "BEHIND", "LAG", "SEEN")
        routers = [
            (
                row.router,
                str(row.revision),
                str(row.published_revision - row.revision),
                f"{row.lag_ms}ms",
                f"{age(reply.now_ms - row.seen_ms)} ago",
            )
            for row in reply.routers
        ]
        parts.append(aligned(titles, routers))
    return "\n".join(parts)


def _share(row: StreamRow) -> str:
    return "" if not row.max_bytes else f"{100 * row.bytes / row.max_bytes:.0f}%"


def _readers(durables: Sequence[DurableRow], wide: bool) -> list[tuple[str, ...]]:
    """A line per service; per durable with `wide`."""
    groups: dict[str, list[DurableRow]] = {}
    for row in durables:
        groups.setdefault(row.name if wide else row.service, []).append(row)
    return [
        (
            name,
            str(sum(row.waiting for row in rows)),
            str(sum(row.in_flight for row in rows)),
            str(sum(row.redelivered for row in rows)),
        )
        for name, rows in groups.items()
    ]


def bus_lines(round_trip_ms: float, reply: InventoryReply) -> str:
    """Health in a few words."""
    letters = reply.dead_letters
    shown = f"{letters}, see `inferbus tap --dead`" if letters else "none"
    rate = f", clock ×{number(reply.clock_rate)}" if reply.clock_rate != 1 else ""
    lines = [f"bus            answers in {round_trip_ms:.1f} ms{rate}"]
    lines += [f"dead letters   {shown}"]
    lines += [f"missing        {what}" for what in reply.missing]
    return "".join(f"{line}\n" for line in lines)


def as_document(
    processes: Sequence[ProcessRow], reply: InventoryReply | None, problems: Sequence[Problem]
) -> dict[str, Any]:
    """All of it as JSON."""
    return {
        "processes": [asdict(row) for row in processes],
        "bus": None if reply is None else reply.to_dict(),
        "problems": [problem.to_dict() for problem in problems],
    }


def down(processes: Sequence[ProcessRow]) -> list[str]:
    """The processes that should run and don't."""
    return [row.name for row in processes if row.state not in RUNNING_STATES]
