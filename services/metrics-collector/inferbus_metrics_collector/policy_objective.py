"""What is sampled for a policy that names an objective and no metric.

Such a policy says what users must notice, e.g. `ttft=2s@99.5%`, and leaves the rest to the
platform: how much a replica serves is found out from these. Invariant: the names are fixed,
whatever engine answers; what an engine doesn't show is left out, and is no problem.
"""

from inferbus_shared.pages.names import families_of

WAITING = "kthena:num_requests_waiting"
"""Requests that wait in the engines: a gauge, summed over the pods."""
RUNNING = "kthena:num_requests_running"
"""Requests that the engines work on: a gauge, summed over the pods."""
COMPLETED = "kthena:request_success_total"
"""Requests that ended, per second."""
GENERATED = "kthena:generation_tokens_total"
"""Tokens that were generated, per second."""

_LATENCY = "kthena:e2e_request_latency_seconds"

OBJECTIVE_FAMILIES: dict[str, tuple[str, ...]] = {
    WAITING: families_of(WAITING),
    RUNNING: families_of(RUNNING),
    COMPLETED: (
        *families_of(COMPLETED),
        *(f"{family}_count" for family in families_of(_LATENCY)),
    ),
    GENERATED: families_of(GENERATED),
}
"""The families that can answer, the best first; a request that ended was also timed."""
