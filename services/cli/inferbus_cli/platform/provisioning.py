"""The one step that makes the NATS server fit for the services; run as a process of its own."""

import asyncio
import json
import logging
from collections.abc import Sequence

from inferbus_cli.platform.directory import PlatformDirectory, PlatformState
from inferbus_contracts.services import Service
from inferbus_contracts.topology import topology
from inferbus_shared.bus.connection import Connection
from inferbus_shared.bus.provision import Report, provision, set_clock
from inferbus_shared.bus.server import storage_limit
from inferbus_shared.program import run_program
from inferbus_shared.settings import BusSettings, load_settings
from inferbus_shared.telemetry import set_up_logging

log = logging.getLogger("inferbus.provision")


def wanted(directory: PlatformDirectory, state: PlatformState) -> str:
    """The argument of `main` for a platform."""
    return json.dumps(
        {
            "nodes": [state.node],
            "storageBytes": storage_limit(directory.nats),
            "clockRate": state.clock_rate,
        }
    )


async def provision_all(
    settings: BusSettings, nodes: Sequence[str], storage_bytes: int, clock_rate: float
) -> Report:
    """Create and update everything, and set the clock; raises `ProblemsError`."""
    connection = Connection(Service.PROVISIONER, settings)
    await connection.open()
    try:
        report = await provision(connection, topology(nodes), storage_bytes)
        await set_clock(connection, clock_rate)
    finally:
        await connection.close()
    return report


def main(argv: Sequence[str]) -> int:
    """`[JSON of {nodes, storageBytes, clockRate}]`; settings come from the environment."""
    set_up_logging("provision")
    asked = json.loads(argv[0])

    def run() -> None:
        report = asyncio.run(
            provision_all(
                load_settings(BusSettings),
                asked["nodes"],
                asked["storageBytes"],
                asked["clockRate"],
            )
        )
        log.info(
            "provisioned",
            extra={
                "added": len(report.created),
                "updated": ",".join(report.updated),
                "unchanged": len(report.unchanged),
            },
        )

    return run_program(run)
