"""What a platform takes of the machine while nothing happens: memory and CPU."""

import asyncio
import time
from collections.abc import Mapping

from tests.bench.configuration import configuration
from tests.bench.figure import Detail, Figure
from tests.bench.processes import ProcessUse, platform_processes, total_memory_bytes
from tests.support.eventually import eventually
from tests.support.platform import model_manifests, running_platform

MEMORY_LIMIT_MB = 900.0
CPU_LIMIT_PERCENT = 8.0
SETTLE_SECONDS = 10.0
QUIET_SECONDS = 35.0
REQUESTS = 20

Processes = Mapping[int, ProcessUse]


async def measure() -> list[Figure]:
    """One model with a policy, some requests, then a quiet stretch with default intervals."""
    with running_platform("--startup", "0") as platform:
        platform.apply(*model_manifests("chat", scaling=(1, 3)))
        await eventually(lambda: platform.complete("chat").status == 200, 60)
        for _ in range(REQUESTS):
            platform.complete("chat")
        await asyncio.sleep(SETTLE_SECONDS)
        before, began = platform_processes(platform.directory), time.monotonic()
        await asyncio.sleep(QUIET_SECONDS)
        after, seconds = platform_processes(platform.directory), time.monotonic() - began
        load = configuration(platform.directory, replicas=1, policies=1)
        return [_memory(before, after, load), _cpu(before, after, seconds, load)]


def _memory(before: Processes, after: Processes, load: dict[str, Detail]) -> Figure:
    """The larger of both looks: a system that reclaims idle pages must not flatter the figure."""
    use = max(before, after, key=total_memory_bytes)
    largest = sorted(use.values(), key=lambda one: one.memory_bytes, reverse=True)[:5]
    return Figure(
        name="memory",
        value=round(total_memory_bytes(use) / 1e6, 1),
        unit="MB",
        limit=MEMORY_LIMIT_MB,
        meaning="proportional set size of all processes together, supervisor, fork server, NATS, "
        "services, node agent and simulated pods",
        configuration=load,
        detail={
            "processes": len(use),
            "largest": ", ".join(f"{one.name} {one.memory_bytes / 1e6:.0f} MB" for one in largest),
        },
    )


def _cpu(before: Processes, after: Processes, seconds: float, load: dict[str, Detail]) -> Figure:
    """CPU of whoever lived at the end; who came or went in between is told."""
    spent = {pid: one.cpu_seconds - _spent(before, pid) for pid, one in after.items()}
    busiest = sorted(spent, key=lambda pid: spent[pid], reverse=True)[:5]
    return Figure(
        name="idle-cpu",
        value=round(sum(spent.values()) / seconds * 100, 2),
        unit="% of a core",
        limit=CPU_LIMIT_PERCENT,
        meaning="user and system time of all processes over a quiet stretch",
        configuration=load | {"quiet_seconds": round(seconds, 1)},
        detail={
            "processes": len(after),
            "came_or_went": len(before.keys() ^ after.keys()),
            "busiest": ", ".join(
                f"{after[pid].name} {spent[pid] / seconds * 100:.2f} %" for pid in busiest
            ),
        },
    )


def _spent(before: Processes, pid: int) -> float:
    return before[pid].cpu_seconds if pid in before else 0.0
