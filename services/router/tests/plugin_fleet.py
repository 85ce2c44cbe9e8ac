"""Candidates and requests as plugins get them."""

import json
from collections.abc import Sequence
from typing import Any

from inferbus_router.policy_pipeline import Pipeline
from inferbus_router.policy_plugins import (
    Candidate,
    EngineReading,
    FilterPlugin,
    PluginRequest,
    ScorePlugin,
)


def candidates(*in_flight: int, **readings: Sequence[Any]) -> list[Candidate]:
    """Endpoints `0`, `1`, …; each reading has one value per endpoint."""
    return [
        Candidate(
            str(index),
            count,
            EngineReading(**{name: values[index] for name, values in readings.items()}),
        )
        for index, count in enumerate(in_flight)
    ]


def request(prompt: Any = "", model: str = "m", **fields: Any) -> PluginRequest:
    """A completion."""
    return PluginRequest(model, json.dumps({"model": model, "prompt": prompt} | fields).encode())


def names(chosen: Sequence[Candidate]) -> list[str]:
    return [str(each.endpoint) for each in chosen]


def pipeline(
    *scores: ScorePlugin | tuple[ScorePlugin, int], filters: Sequence[FilterPlugin] = ()
) -> Pipeline:
    """Each score with weight 1 unless it comes with another."""
    weighted = [each if isinstance(each, tuple) else (each, 1) for each in scores]
    return Pipeline(filters, weighted)


def no_lap(name: str, kind: str) -> None:
    del name, kind
