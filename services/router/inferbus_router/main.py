"""The router as a program.

Runs until SIGTERM or SIGINT, then drains. A second signal ends the grace period.
"""

import argparse
import asyncio
import gc
import logging
import signal
import sys
from collections.abc import Sequence

import uvloop

from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_router.adapters_static import StaticTable
from inferbus_router.ports import SilentDemandSink, TableSource
from inferbus_router.settings import RouterSettings
from inferbus_router.wiring import start_router
from inferbus_shared.clock import SystemClock
from inferbus_shared.program import run_program
from inferbus_shared.settings import BusSettings, load_settings

_GC_THRESHOLDS = (50_000, 20, 50)
"""Requests leave no reference cycles behind, so that collecting often only costs time."""

log = logging.getLogger("inferbus.router")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the router; returns the exit code (`inferbus_shared.program`)."""
    parser = argparse.ArgumentParser(
        prog="inferbus-router",
        description="OpenAI-compatible router; settings are INFERBUS_ROUTER_… variables.",
    )
    parser.parse_args(argv)
    return run_program(_run)


def _run() -> None:
    logging.basicConfig(stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    log.setLevel(logging.INFO)
    settings = load_settings(RouterSettings)
    bus = load_settings(BusSettings)
    uvloop.run(_serve(settings, bus))


async def _serve(settings: RouterSettings, bus: BusSettings) -> None:
    stop = _stop_on_signals()
    source = _table_source(settings)
    running = await start_router(settings, SystemClock(), bus.instance, SilentDemandSink())
    try:
        await source.run(running.router)
        gc.freeze()
        gc.set_threshold(*_GC_THRESHOLDS)
        log.info(
            "router listens on port %d, its metrics on port %d",
            running.listener.port,
            running.admin.port,
        )
        await stop.wait()
        stop.clear()
    finally:
        stopping = asyncio.ensure_future(running.stop())
        interrupted = asyncio.ensure_future(stop.wait())
        await asyncio.wait({stopping, interrupted}, return_when=asyncio.FIRST_COMPLETED)
        interrupted.cancel()
        stopping.cancel()


def _table_source(settings: RouterSettings) -> TableSource:
    if settings.table_file is None:
        raise ProblemsError(
            Problem(
                code=ErrorCode.BAD_SETTING,
                message="there is no source for the routing table",
                field="INFERBUS_ROUTER_TABLE_FILE",
                remedy="set it to a JSON or YAML file of table parts",
            )
        )
    return StaticTable(settings.table_file)


def _stop_on_signals() -> asyncio.Event:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    return stop
