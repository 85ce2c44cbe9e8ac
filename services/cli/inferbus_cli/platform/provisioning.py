"""The one step that makes the NATS server fit for the services; run as a process of its own."""

import asyncio
import logging
from collections.abc import Sequence

from inferbus_cli.platform.provision_request import ProvisionRequest
from inferbus_contracts.services import Service
from inferbus_contracts.topology import topology
from inferbus_shared.bus.connection import Connection
from inferbus_shared.bus.provision import Report, provision, set_clock
from inferbus_shared.program import run_program
from inferbus_shared.settings import BusSettings, load_settings
from inferbus_shared.telemetry import set_up_logging

log = logging.getLogger("inferbus.provision")


async def provision_all(settings: BusSettings, request: ProvisionRequest) -> Report:
    """Create and update everything, and set the clock; raises `ProblemsError`."""
    connection = Connection(Service.PROVISIONER, settings)
    await connection.open()
    try:
        report = await provision(connection, topology(request.nodes), request.storage_bytes)
        await set_clock(connection, request.clock_rate)
    finally:
        await connection.close()
    return report


def main(argv: Sequence[str]) -> int:
    """`[argument of a ProvisionRequest]`; settings come from the environment."""
    set_up_logging("provision")
    request = ProvisionRequest.from_argument(argv[0])

    def run() -> None:
        report = asyncio.run(provision_all(load_settings(BusSettings), request))
        log.info(
            "provisioned",
            extra={
                "added": len(report.created),
                "updated": ",".join(report.updated),
                "unchanged": len(report.unchanged),
            },
        )

    return run_program(run)
