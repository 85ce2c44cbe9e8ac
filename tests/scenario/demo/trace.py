"""Requests of a real service in the order they came, or made ones of the same shape.

Invariant: a stretch begins at 0 and is in order of time; a made trace is the same for the same
seed.
"""

import csv
import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

REAL = (
    "Azure LLM inference trace 2023 (code completion), Azure Public Dataset, Microsoft, CC-BY 4.0"
)
MADE = "a made trace (bursty arrivals, long prompts, short answers)"

MOST_PROMPT_TOKENS = 7437
"""The longest prompt of the real trace."""

_BURST_MS = 1000
_SILENT_MINUTES = 0.2


@dataclass(frozen=True, slots=True)
class TracedRequest:
    """One request."""

    at_ms: int
    prompt_tokens: int
    output_tokens: int


@dataclass(frozen=True)
class Trace:
    """Requests, and where they come from."""

    origin: str
    requests: Sequence[TracedRequest]
    length_ms: int


def read_trace(path: Path) -> Trace:
    """The trace in a file of the Azure Public Dataset (TIMESTAMP, ContextTokens, GeneratedTokens).

    Raises `OSError`, and `KeyError` or `ValueError` for a file of another form or without rows.
    """
    with path.open(newline="") as file:
        rows = [
            (datetime.fromisoformat(row["TIMESTAMP"]), row["ContextTokens"], row["GeneratedTokens"])
            for row in csv.DictReader(file)
        ]
    first = min(moment for moment, _, _ in rows)
    requests = (
        TracedRequest(
            at_ms=round((moment - first).total_seconds() * 1000),
            prompt_tokens=max(1, int(prompt)),
            output_tokens=max(1, int(output)),
        )
        for moment, prompt, output in rows
    )
    ordered = sorted(requests, key=lambda one: one.at_ms)
    return Trace(REAL, ordered, ordered[-1].at_ms + 1)


def made_trace(length_ms: int, seed: int = 1) -> Trace:
    """Minutes of very different rates, some silent, with bursts of seconds inside them."""
    chance = random.Random(seed)
    return Trace(MADE, list(_made(length_ms, chance)), length_ms)


def stretch(trace: Trace, start_ms: int, length_ms: int) -> Trace:
    """The part of a trace that begins at `start_ms`, shorter where the trace ends before."""
    end_ms = min(start_ms + length_ms, trace.length_ms)
    chosen = [
        replace(one, at_ms=one.at_ms - start_ms)
        for one in trace.requests
        if start_ms <= one.at_ms < end_ms
    ]
    return Trace(trace.origin, chosen, end_ms - start_ms)


def _made(length_ms: int, chance: random.Random) -> Iterator[TracedRequest]:
    per_second = 0.0
    for second_ms in range(0, length_ms, _BURST_MS):
        if second_ms % 60_000 == 0:
            silent = second_ms > 0 and chance.random() < _SILENT_MINUTES
            per_second = 0.0 if silent else chance.lognormvariate(0.9, 0.75)
        rate = per_second * chance.gammavariate(0.5, 2.0)
        arrivals = sorted(chance.uniform(0, _BURST_MS) for _ in range(_poisson(rate, chance)))
        for offset_ms in arrivals:
            yield TracedRequest(
                at_ms=min(second_ms + int(offset_ms), length_ms - 1),
                prompt_tokens=min(MOST_PROMPT_TOKENS, _log_normal(1469, 0.9, chance)),
                output_tokens=_log_normal(13, 1.1, chance),
            )


def _log_normal(median: int, sigma: float, chance: random.Random) -> int:
    return max(1, round(chance.lognormvariate(math.log(median), sigma)))


def _poisson(mean: float, chance: random.Random) -> int:
    """Exponential gaps that fit into one unit of time."""
    count, passed = 0, chance.expovariate(1.0)
    while passed < mean:
        count += 1
        passed += chance.expovariate(1.0)
    return count
