"""What an engine's metrics page and model list say to scheduler plugins (routing spec, section 7).

Invariant: a number is finite and not negative, or it isn't there; several series of one engine
(data-parallel ranks) make one number, whatever order they stand in.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import orjson

from inferbus_router.policy_plugins import UNREAD, EngineReading
from inferbus_shared.pages.names import families_of
from inferbus_shared.pages.scan import Scan

_WAITING = families_of("kthena:num_requests_waiting")
_RUNNING = families_of("kthena:num_requests_running")
_KV_CACHE_USAGE = families_of("kthena:kv_cache_usage_perc")
_TTFT = families_of("kthena:time_to_first_token_seconds")
_TPOT = families_of("kthena:time_per_output_token_seconds")

FAMILIES = frozenset({*_WAITING, *_RUNNING, *_KV_CACHE_USAGE, *_TTFT, *_TPOT})
"""What has to be looked for on a page."""


@dataclass(frozen=True, slots=True)
class LatencySum:
    """Of a histogram, since the engine started."""

    seconds: float
    count: float

    def mean_since(self, earlier: "LatencySum | None") -> float | None:
        """The mean of what was added; None where nothing was, or nothing is known from before.

        An engine that has restarted meanwhile began at zero.
        """
        if earlier is None:
            return None
        if self.count < earlier.count or self.seconds < earlier.seconds:
            earlier = LatencySum(0.0, 0.0)
        count = self.count - earlier.count
        return (self.seconds - earlier.seconds) / count if count > 0 else None


@dataclass(frozen=True, slots=True)
class EnginePage:
    """One page of one engine, and what it means together with the one before."""

    reading: EngineReading
    ttft: LatencySum | None
    tpot: LatencySum | None


def read_page(page: Scan, before: EnginePage | None) -> EnginePage:
    """What a page says; a latency without new samples stays as it was."""
    ttft, tpot = _latency(page, _TTFT), _latency(page, _TPOT)
    known = before.reading if before is not None else UNREAD
    new_ttft = ttft and before and ttft.mean_since(before.ttft)
    new_tpot = tpot and before and tpot.mean_since(before.tpot)
    usage = _gauge(page, _KV_CACHE_USAGE)
    reading = EngineReading(
        waiting=math.fsum(values) if (values := _gauge(page, _WAITING)) else None,
        running=math.fsum(values) if (values := _gauge(page, _RUNNING)) else None,
        kv_cache_usage=math.fsum(usage) / len(usage) if usage else None,
        ttft_seconds=new_ttft if isinstance(new_ttft, float) else known.ttft_seconds,
        tpot_seconds=new_tpot if isinstance(new_tpot, float) else known.tpot_seconds,
        models=known.models,
    )
    return EnginePage(reading, ttft, tpot)


def with_models(reading: EngineReading, models: frozenset[str] | None) -> EngineReading:
    """The same with another list of models; None: nobody knows."""
    return replace(reading, models=models)


def read_models(body: bytes) -> frozenset[str] | None:
    """The ids in the answer to GET /v1/models; None where it isn't such an answer."""
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    data = document.get("data") if isinstance(document, dict) else None
    if not isinstance(data, list):
        return None
    names = (each.get("id") for each in data if isinstance(each, dict))
    return frozenset(name for name in names if isinstance(name, str))


def _gauge(page: Scan, families: tuple[str, ...]) -> list[float]:
    """The values of the first of the families that the page has."""
    for family in families:
        if values := _usable(page.samples.get(family)):
            return values
    return []


def _latency(page: Scan, families: tuple[str, ...]) -> LatencySum | None:
    for family in families:
        sums = _usable(page.samples.get(f"{family}_sum"))
        counts = _usable(page.samples.get(f"{family}_count"))
        if sums and counts:
            return LatencySum(math.fsum(sums), math.fsum(counts))
    return None


def _usable(series: Mapping[bytes, float] | None) -> list[float]:
    return [value for value in (series or {}).values() if math.isfinite(value) and value >= 0]
