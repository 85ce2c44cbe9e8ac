"""The tables of `top`. Pure."""

from inferbus_cli.tables import aligned
from inferbus_cli.units import age, latency, number
from inferbus_contracts.api.console import ModelRow, TargetRow, TopReply

_TARGETS = ("TARGET", "DESIRED", "READY", "LAST DECISION", "AGE", "METRICS", "POLICY")
_MODELS = (
    "MODEL",
    "REQ/S",
    "ERR/S",
    "TOKENS/S",
    "QUEUED",
    "RUNNING",
    "TTFT P50",
    "TTFT P99",
    "TARGET",
)


def rendered(reply: TopReply, now_ms: int) -> str:
    """Targets, then the models with traffic."""
    parts = []
    if reply.targets:
        parts.append(aligned(_TARGETS, [_target(row, now_ms) for row in reply.targets]))
    if reply.models:
        parts.append(aligned(_MODELS, [_model(row) for row in reply.models]))
    return "\n".join(parts) or "no workload and no traffic\n"


def _target(row: TargetRow, now_ms: int) -> tuple[str, ...]:
    metrics = " ".join(f"{name}={number(value)}" for name, value in sorted(row.metrics.items()))
    decided = "" if row.last_decision_ms is None else age(now_ms - row.last_decision_ms)
    ready = f"{row.ready}/{row.replicas}"
    return (
        row.target,
        str(row.desired),
        ready,
        row.last_decision,
        decided,
        metrics,
        row.policy,
    )


def _model(row: ModelRow) -> tuple[str, ...]:
    return (
        row.model,
        number(row.requests_per_second),
        number(row.errors_per_second),
        number(row.output_tokens_per_second),
        str(row.queued),
        str(row.in_flight),
        latency(row.ttft_p50_ms),
        latency(row.ttft_p99_ms),
        row.target,
    )
