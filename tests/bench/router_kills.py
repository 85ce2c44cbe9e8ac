"""Connections that are refused while router workers are killed under load, one after the other."""

import asyncio
import re
import time

from inferbus_cli.platform.health import readiness
from inferbus_contracts.services import Service
from tests.bench.configuration import configuration
from tests.bench.figure import Detail, Figure
from tests.support.eventually import eventually
from tests.support.load import LoadCounts, running_load
from tests.support.platform import Platform, model_manifests, running_platform

CLIENTS = 16
TOKENS = 2
"""Of an answer: so few that connections come often."""
BETWEEN_SECONDS = 2.0
"""Of load before each kill and after the last worker is back."""
BACK_SECONDS = 60.0


async def measure() -> list[Figure]:
    """Every worker is killed once; each request has a connection of its own."""
    with running_platform("--startup", "0") as platform:
        platform.apply(*model_manifests("chat"))
        await eventually(lambda: platform.complete("chat").status == 200, BACK_SECONDS)
        async with running_load(platform.router) as load:
            load.clients("chat", CLIENTS, max_tokens=TOKENS)
            back_seconds = [await _killed(platform, name) for name in router_workers(platform)]
            await asyncio.sleep(BETWEEN_SECONDS)
            counts = load.counts
        return [_figure(counts, back_seconds, configuration(platform.directory, replicas=1))]


def router_workers(platform: Platform) -> list[str]:
    """The names of the router's processes."""
    own = re.compile(rf"{Service.ROUTER.value}(-\d+)?")
    return sorted(name for name in platform.processes() if own.fullmatch(name))


def _figure(counts: LoadCounts, back: list[float], load: dict[str, Detail]) -> Figure:
    return Figure(
        name="router-kills",
        value=float(counts.refused),
        unit="connections refused",
        limit=0.0,
        meaning="connections that the router's address refused while each of its workers was "
        "killed with SIGKILL under load",
        configuration=load | {"clients": CLIENTS, "killed": len(back)},
        detail={
            "answered": counts.good,
            "answered_with_errors": counts.answered - counts.good,
            "cut_off_with_their_worker": counts.broken,
            "back_after_seconds": ", ".join(f"{seconds:.2f}" for seconds in back),
        },
    )


async def _killed(platform: Platform, name: str) -> float:
    """Kill a worker under load; seconds until another one is ready in its place."""
    await asyncio.sleep(BETWEEN_SECONDS)
    old = platform.kill(name)
    began = time.monotonic()

    async def is_back() -> bool:
        row = platform.processes()[name]
        return row.pid not in (None, old) and not await asyncio.to_thread(readiness, row.health_url)

    await eventually(is_back, BACK_SECONDS)
    return time.monotonic() - began
