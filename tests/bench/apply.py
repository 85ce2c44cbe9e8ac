"""How fast objects become facts: from `inferbus apply` to the last `spec.changed`."""

import json
import time
from pathlib import Path
from typing import Any

from inferbus_shared.bus.bus import Bus
from inferbus_shared.bus.follow import Start
from tests.bench.configuration import configuration
from tests.bench.figure import Figure
from tests.support.platform import SCALING_METRIC, running_platform

OBJECTS = 300
KIND = "AutoscalingPolicy"


async def measure() -> list[Figure]:
    """One unit of policies, which nothing else follows from."""
    with running_platform("--startup", "0") as platform:
        manifests = Path(platform.directory.root) / "policies.json"
        items = [_policy(f"policy-{number:04}") for number in range(OBJECTS)]
        manifests.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
        async with platform.bus() as bus:
            began = time.monotonic()
            platform.inferbus("apply", "-f", str(manifests))
            applied = time.monotonic()
            await _until_changed(bus)
            seconds = time.monotonic() - began
        return [
            Figure(
                name="apply",
                value=round(OBJECTS / seconds, 1),
                unit="objects/s",
                meaning="one unit of objects from the start of `inferbus apply` until the last "
                "spec.changed stands on the bus",
                configuration=configuration(platform.directory, objects=OBJECTS),
                detail={
                    "command_seconds": round(applied - began, 2),
                    "seconds": round(seconds, 2),
                },
            )
        ]


async def _until_changed(bus: Bus) -> None:
    """Return once every object has a fact."""
    names: set[str] = set()
    follower = bus.follow("spec.changed", Start.last_per_subject(), kind=KIND)
    async for message in follower.messages():
        names.add((await bus.read(message)).key.name)
        if len(names) == OBJECTS:
            return


def _policy(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "workload.serving.volcano.sh/v1alpha1",
        "kind": KIND,
        "metadata": {"name": name},
        "spec": {"metrics": [{"metricName": SCALING_METRIC, "targetValue": "2"}]},
    }
