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
from typing import Any

import uvloop

from inferbus_contracts.services import Service
from inferbus_router.adapters_bus import BusTable, Sayings
from inferbus_router.adapters_static import StaticTable
from inferbus_router.ports import DemandSink, SilentDemandSink, TableSource
from inferbus_router.settings import RouterSettings
from inferbus_router.wiring import RunningRouter, start_router
from inferbus_shared.bus.bus import Bus
from inferbus_shared.bus.connection import Connection
from inferbus_shared.bus.provision import read_anchor
from inferbus_shared.clock import SystemClock
from inferbus_shared.open_files import raise_limit_of_open_files
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
    # Children inherit it from the fork server; a router without a platform has only this.
    raise_limit_of_open_files()
    settings = load_settings(RouterSettings)
    bus = load_settings(BusSettings)
    uvloop.run(_serve(settings, bus))


async def _serve(settings: RouterSettings, bus: BusSettings) -> None:
    stop = _stop_on_signals()
    if settings.table_file is not None:
        source = StaticTable(settings.table_file)
        await route_by(settings, bus, SystemClock(), source, SilentDemandSink(), stop)
        return
    connection = Connection(Service.ROUTER, bus)
    await connection.open()
    try:
        clock = SystemClock(await read_anchor(connection))
        sayings = Sayings(Bus(connection, clock), bus.instance)
        telling = asyncio.ensure_future(sayings.run())
        source_of_parts = BusTable(Bus(connection, clock), sayings)
        await route_by(settings, bus, clock, source_of_parts, sayings, stop)
        telling.cancel()
    finally:
        await connection.close()


async def route_by(
    settings: RouterSettings,
    bus: BusSettings,
    clock: SystemClock,
    source: TableSource,
    sink: DemandSink,
    stop: asyncio.Event,
) -> None:
    """Route by the source's table until told to stop, then drain; fails when the source does."""
    running = await start_router(settings, clock, bus.instance, sink)
    feeding = asyncio.ensure_future(source.run(running.router))
    stopped = asyncio.ensure_future(stop.wait())
    ready = asyncio.ensure_future(running.router.ready.wait())
    try:
        await asyncio.wait({feeding, stopped, ready}, return_when=asyncio.FIRST_COMPLETED)
        if running.router.ready.is_set():
            await _accept(running)
        await _first_to_matter(feeding, stopped)
    finally:
        for task in (feeding, stopped, ready):
            task.cancel()
        stop.clear()
        log.info("router stops")
        await _drain(running, stop)


async def _accept(running: RunningRouter) -> None:
    await running.accept()
    log.info(
        "router listens on port %d, its metrics on port %d",
        running.listener.port,
        running.admin.port,
    )
    gc.freeze()
    gc.set_threshold(*_GC_THRESHOLDS)


async def _drain(running: RunningRouter, again: asyncio.Event) -> None:
    """Stop the router; a second signal ends the grace period."""
    stopping = asyncio.ensure_future(running.stop())
    interrupted = asyncio.ensure_future(again.wait())
    await asyncio.wait({stopping, interrupted}, return_when=asyncio.FIRST_COMPLETED)
    for task in (stopping, interrupted):
        task.cancel()
    await asyncio.gather(stopping, interrupted, return_exceptions=True)


async def _first_to_matter(feeding: asyncio.Future[Any], stopped: asyncio.Future[Any]) -> None:
    """Wait for the stop; a source that fails before is an error, one that just ends is not."""
    await asyncio.wait({feeding, stopped}, return_when=asyncio.FIRST_COMPLETED)
    if feeding.done():
        feeding.result()
        await stopped


def _stop_on_signals() -> asyncio.Event:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    return stop
