"""What the demo came to, as text. Pure.

Invariant: the fixed fleet that a model is compared with is the policy's maximum, all the time.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from inferbus_cli.tables import aligned
from inferbus_cli.units import latency
from tests.scenario.demo.fleet import Replicas
from tests.scenario.demo.measured import Measured, Spread, first_token_spread, total_spread


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelTotal:
    """One model from the beginning to the end."""

    name: str
    measured: Measured
    replicas: Replicas
    decisions: int
    changes: int
    """Decisions that changed its replicas."""


def summary(models: Sequence[ModelTotal], until_ms: float) -> str:
    """Requests and latencies, decisions and replicas; `until_ms` is the fleet's time at the end."""
    return "\n".join(
        [
            _requests(models),
            _replicas(models, until_ms),
            *_failures(models),
            _saved(models, until_ms),
        ]
    )


def _requests(models: Sequence[ModelTotal]) -> str:
    titles = ("MODEL", "REQUESTS", "FAILED", "TTFT P50", "P95", "TOTAL P50", "P95")
    rows = []
    for model in models:
        answers = model.measured.answers
        rows.append(
            (
                model.name,
                f"{model.measured.sent:,}",
                f"{model.measured.errors.total():,}",
                *_pair(first_token_spread(answers)),
                *_pair(total_spread(answers)),
            )
        )
    return aligned(titles, rows)


def _replicas(models: Sequence[ModelTotal], until_ms: float) -> str:
    titles = ("MODEL", "REPLICAS", "DECISIONS", "CHANGES", "REPLICA-SECONDS", "FIXED AT MAXIMUM")
    rows = [
        (
            model.name,
            f"{model.replicas.least} to {model.replicas.most}",
            str(model.decisions),
            str(model.changes),
            f"{model.replicas.replica_seconds(until_ms):,.0f}",
            f"{_fixed_seconds(model, until_ms):,.0f}",
        )
        for model in models
    ]
    return aligned(titles, rows)


def _failures(models: Sequence[ModelTotal]) -> list[str]:
    errors: Counter[str] = Counter()
    for model in models:
        errors += model.measured.errors
    if not errors:
        return []
    told = ", ".join(f"{count} × {error}" for error, count in errors.most_common())
    return [f"What failed: {told}.\n"]


def _saved(models: Sequence[ModelTotal], until_ms: float) -> str:
    used = sum(model.replicas.replica_seconds(until_ms) for model in models)
    fixed = sum(_fixed_seconds(model, until_ms) for model in models)
    return (
        f"{used:,.0f} replica-seconds instead of the {fixed:,.0f} of a fleet fixed at its maximum: "
        f"{1 - used / fixed:.0%} less."
    )


def _fixed_seconds(model: ModelTotal, until_ms: float) -> float:
    return model.replicas.maximum * until_ms / 1000


def _pair(spread: Spread) -> tuple[str, str]:
    return latency(spread.p50_ms), latency(spread.p95_ms)
