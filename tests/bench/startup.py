"""From nothing to the first answer: what somebody waits who types the first two commands."""

import json
import os
import statistics
import tempfile
import time
from pathlib import Path

from tests.bench.configuration import configuration
from tests.bench.figure import Detail, Figure
from tests.bench.machine import machine
from tests.bench.processes import platform_processes
from tests.support.eventually import eventually
from tests.support.platform import Platform, model_manifests

LIMIT_SECONDS = 10.0
RUNS = 3
MOST_SECONDS = 60.0


async def measure() -> list[Figure]:
    """The median of three platforms in new folders, one after the other."""
    runs = [await _one_run() for _ in range(RUNS)]
    total = [sum(steps.values()) for steps, _, _ in runs]
    cpu = [spent for _, _, spent in runs]
    middle = runs[total.index(statistics.median(total))]
    state = machine()
    return [
        Figure(
            name="start-up",
            value=round(statistics.median(total), 2),
            unit="s",
            limit=LIMIT_SECONDS,
            meaning="from `inferbus up --detach` through `inferbus apply` to the first completion",
            configuration=middle[1]
            | {
                "folder": "new",
                "own_code_compiled": state["own_code_compiled"],
                "page_cache": state["page_cache"],
            },
            detail={
                **{f"{name}_seconds": round(value, 2) for name, value in middle[0].items()},
                "runs": ", ".join(f"{value:.2f}" for value in total),
                "cpu_seconds": round(statistics.median(cpu), 2),
            },
        )
    ]


async def _one_run() -> tuple[dict[str, float], dict[str, Detail], float]:
    """Seconds of each step, the configuration, and CPU seconds: these hardly feel other work."""
    with tempfile.TemporaryDirectory(prefix="inferbus-bench-") as folder:
        manifests = Path(folder) / "model.json"
        unit = {"apiVersion": "v1", "kind": "List", "items": model_manifests("chat")}
        manifests.write_text(json.dumps(unit))
        platform = Platform(Path(folder) / "platform")
        began, commands = time.monotonic(), _cpu_of_ended_children()
        try:
            platform.up("--startup", "0")
            up = time.monotonic()
            platform.inferbus("apply", "-f", str(manifests))
            applied = time.monotonic()
            await eventually(lambda: platform.complete("chat").status == 200, MOST_SECONDS)
            answered = time.monotonic()
            lives = platform_processes(platform.directory).values()
            return (
                {"up": up - began, "apply": applied - up, "first_answer": answered - applied},
                configuration(platform.directory, replicas=1),
                _cpu_of_ended_children() - commands + sum(one.cpu_seconds for one in lives),
            )
        finally:
            if platform.directory.state_file.exists():
                platform.down()


def _cpu_of_ended_children() -> float:
    """Of this process, in seconds: the commands it ran."""
    used = os.times()
    return used.children_user + used.children_system
