"""What plans cost: run with `python …/workload-reconciler/tests/<this file>`.

1,000 settled workloads of ten pods each, all with other templates, in a cluster with Volcano: CPU
of reading each object, its snapshots and its memory, and of planning it, as each resync does. The
median of five rounds, with the cheapest and the dearest.
"""

import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from workload_builders import pod_template, role
from workload_volcano import gang, on_volcano
from workload_world import World

WORKLOADS = 1_000
ROUNDS = 5


def workload(number: int) -> World:
    """Two groups of prefill with a worker, twice, and decode: ten pods."""
    template = pod_template("engine")
    engine = template["spec"]["containers"][0]
    engine["args"] = [f"--served-model-name=model-{number}", *(f"--flag-{n}" for n in range(20))]
    engine["env"] = [{"name": f"NAME_{n}", "value": str(n)} for n in range(15)]
    engine["resources"] = {
        "requests": {"cpu": "4", "memory": "32Gi"},
        "limits": {"nvidia.com/gpu": "1"},
    }
    roles = [
        role("prefill", 2, 1, entryTemplate=template, workerTemplate=template),
        role("decode", 1, entryTemplate=template),
    ]
    return on_volcano(gang(2, roles, name=f"w{number}"))


def resync_ms(worlds: list[World]) -> float:
    """CPU milliseconds of looking at all of them once."""
    views = [world.observed() for world in worlds]
    started = time.process_time()
    for world, view in zip(worlds, views, strict=True):
        assert world.plan(view).actions == ()
    return 1000 * (time.process_time() - started)


def main() -> None:
    """Print the figures."""
    worlds = [workload(number) for number in range(WORKLOADS)]
    assert all(len(world.pod_names()) == 10 for world in worlds)
    rounds = [resync_ms(worlds) for _ in range(ROUNDS)]
    median = statistics.median(rounds)
    sys.stdout.write(
        f"{WORKLOADS} workloads, {10 * WORKLOADS} pods: {median:.0f} ms CPU a resync,"
        f" {median / WORKLOADS:.2f} ms a workload ({min(rounds):.0f} to {max(rounds):.0f} ms)\n"
    )


if __name__ == "__main__":
    main()
