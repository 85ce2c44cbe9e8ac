"""Reading the drain scripts that the reference platforms write as preStop hooks.

Such a script polls the engine's metrics page until nothing runs and nothing waits. A simulated
engine has no shell to run it in, so its meaning is carried out instead.
"""

from collections.abc import Iterable

DRAIN_GAUGES = (
    "vllm:num_requests_running",
    "vllm:num_requests_waiting",
    "sglang:num_running_reqs",
    "sglang:num_queue_reqs",
    "llamacpp:requests_processing",
    "llamacpp:requests_deferred",
    "tgi_batch_current_size",
    "tgi_queue_size",
)
"""The gauges that known drain scripts compare with zero."""


def drained_gauges(script: str) -> tuple[str, ...]:
    """The gauges a script waits for; empty when it is no drain script that is known."""
    if "/metrics" not in script:
        return ()
    return tuple(gauge for gauge in DRAIN_GAUGES if gauge in script)


def is_drained(page: str, gauges: Iterable[str]) -> bool:
    """Whether a metrics page shows all gauges at zero. A missing gauge waits for nothing."""
    return all(_total(page, gauge) == 0 for gauge in gauges)


def _total(page: str, gauge: str) -> float:
    """The sum over all label sets."""
    total = 0.0
    for line in page.splitlines():
        rest = line.removeprefix(gauge)
        if rest is not line and rest[:1] in ("{", " "):
            total += float(rest.rpartition(" ")[2])
    return total
