"""`inferbus status`: is everything there, and does it keep up."""

import sys
import time
from collections.abc import Sequence

from inferbus_cli.asking import ask_console
from inferbus_cli.documents import as_json
from inferbus_cli.options import command as command_with_examples
from inferbus_cli.options import dir_option, output_option
from inferbus_cli.platform.directory import PlatformDirectory, PlatformState
from inferbus_cli.platform.overview import ProcessRow, processes
from inferbus_cli.session import Session, on_bus
from inferbus_cli.status_report import as_document, bus_lines, bus_tables, down, process_table
from inferbus_contracts.api.console import ConsoleQuery, InventoryReply, InventoryRequest
from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError


@command_with_examples("status", "inferbus status", "inferbus status -o wide --dir /tmp/demo")
@output_option("wide", "json")
@dir_option
def command(output: str | None, directory: PlatformDirectory) -> None:
    """Show processes, streams, readers and their lag, dead letters, and routers.

    The exit code is 0 only when everything runs and nothing is missing.
    """
    rows = processes(directory)
    if output != "json" and rows:
        sys.stdout.write(f"{process_table(rows)}\n")
        sys.stdout.flush()
    problems = _down(directory, rows)
    reply: InventoryReply | None = None
    try:
        reply, round_trip_ms = on_bus(directory, lambda session: _inventory(session, directory))
    except ProblemsError as error:
        problems += error.problems
    else:
        problems += _missing(reply)
        if output != "json":
            sys.stdout.write(f"{bus_tables(reply, wide=output == 'wide')}\n")
            sys.stdout.write(bus_lines(round_trip_ms, reply))
    if output == "json":
        sys.stdout.write(as_json(as_document(rows, reply, problems)))
    if problems:
        raise ProblemsError(*problems)


async def _inventory(
    session: Session, directory: PlatformDirectory
) -> tuple[InventoryReply, float]:
    """What stands on the bus, and how long one question to the server took, ms."""
    state = PlatformState.read(directory.state_file)
    began = time.perf_counter()
    await session.bus.connection.client.flush()
    round_trip_ms = (time.perf_counter() - began) * 1000
    request = InventoryRequest(nodes=[state.node] if state else [])
    reply = await ask_console(session, ConsoleQuery.STATUS, request, InventoryReply)
    return reply, round_trip_ms


def _down(directory: PlatformDirectory, rows: Sequence[ProcessRow]) -> list[Problem]:
    return [
        Problem(
            code=ErrorCode.NOT_RUNNING,
            message=f"{name} doesn't run",
            file=str(directory.root),
            remedy=f"`inferbus logs {name}` says why, `inferbus up` starts it",
        )
        for name in down(rows)
    ]


def _missing(reply: InventoryReply) -> list[Problem]:
    return [
        Problem(
            code=ErrorCode.TOPOLOGY_MISSING,
            message=what,
            remedy="run `inferbus provision` against this NATS server",
        )
        for what in reply.missing
    ]
