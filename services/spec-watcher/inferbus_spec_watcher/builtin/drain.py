"""The hook that lets an engine finish its requests before its pod ends.

Invariant: it ends at once when the engine doesn't answer or doesn't tell the gauges, so a dead
engine never holds its pod until the grace period is over (defect MB_7_1_10).
"""

from collections.abc import Sequence
from typing import Any

VLLM_GAUGES = ("vllm:num_requests_running", "vllm:num_requests_waiting")
SGLANG_GAUGES = ("sglang:num_running_reqs", "sglang:num_queue_reqs")
LLAMACPP_GAUGES = ("llamacpp:requests_processing", "llamacpp:requests_deferred")
TGI_GAUGES = ("tgi_batch_current_size", "tgi_queue_size")


def drain_script(gauges: Sequence[str], port: int) -> str:
    """A shell script that waits until the sum of the gauges over all their series is zero."""
    pattern = "|".join(gauges)
    return (
        f"while page=$(curl --silent --fail --max-time 2 http://localhost:{port}/metrics); do\n"
        '  busy=$(printf "%s\\n" "$page" | '
        f"awk '/^({pattern})[{{ ]/ {{ sum += $NF }} END {{ print sum + 0 }}')\n"
        '  if [ "${busy:-0}" = 0 ]; then exit 0; fi\n'
        "  sleep 5\n"
        "done\n"
    )


def drain_hook(gauges: Sequence[str], port: int) -> dict[str, Any]:
    """core/v1 Lifecycle with that script before the stop."""
    return {"preStop": {"exec": {"command": ["/bin/sh", "-c", drain_script(gauges, port)]}}}
