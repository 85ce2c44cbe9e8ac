"""Ten thousand streams at a time through one router process: none may fail, and what it takes."""

import asyncio
import contextlib
import tempfile
from pathlib import Path

from tests.bench.figure import Figure
from tests.bench.peers.bodies import chat_bodies
from tests.bench.peers.contestants import inferbus
from tests.bench.peers.programs import engine, processors
from tests.bench.peers.proxy import Proxy, running, under_load

STREAMS = 10_000
EVENTS, PACE_MS = 15, 1000
_MIB = 1024 * 1024


async def measure() -> list[Figure]:
    """The most memory that was seen while all streams were open, and how many of them failed."""
    measured_cpu, measuring_cpu = processors()
    async with contextlib.AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        engines = stack.enter_context(engine(PACE_MS, EVENTS, measuring_cpu))
        router = await stack.enter_async_context(
            running("inferbus", inferbus, engines, folder, measured_cpu)
        )
        bodies = chat_bodies(folder / "bodies", count=40, prompt_bytes=600, stream=True)
        watching = asyncio.ensure_future(_most_memory(router))
        try:
            load, _ = await under_load(
                router, bodies, measuring_cpu, connections=STREAMS, seconds=120, requests=STREAMS
            )
        finally:
            watching.cancel()
        most_bytes = router.peak_bytes
    configuration = {"streams": STREAMS, "events": EVENTS, "pace_ms": PACE_MS}
    return [
        Figure(
            name="router-open-streams",
            value=load.errors + STREAMS - load.requests,
            unit="streams failed",
            limit=0,
            meaning="of all streams that were open at once, those that didn't end as they should",
            configuration=configuration,
            detail={"events": load.events, "seconds": load.seconds},
        ),
        Figure(
            name="router-open-streams-memory",
            value=round(most_bytes / _MIB, 1),
            unit="MiB",
            limit=500 * 10**6 / _MIB,
            meaning="proportional set size of the router process at its most, same run",
            configuration=configuration,
        ),
    ]


async def _most_memory(router: Proxy) -> None:
    while True:
        router.note_memory()
        await asyncio.sleep(0.5)
