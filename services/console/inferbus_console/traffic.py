"""The traffic of the last ten seconds, from what the routers report every second.

Invariant: what is older than the window doesn't count, whenever it arrived. Times are virtual.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from inferbus_console.policy_latency import merged, quantile_ms
from inferbus_contracts.api.console import ModelRow
from inferbus_contracts.events.demand import DemandObserved, ModelDemand
from inferbus_contracts.keys import ObjectKey

WINDOW_MS = 10_000


@dataclass(frozen=True, slots=True)
class _Interval:
    """One interval of one router."""

    start_ms: int
    router: str
    demand: ModelDemand


class Traffic:
    """Traffic by target and model."""

    def __init__(self) -> None:
        self._intervals: dict[tuple[str, str], deque[_Interval]] = {}

    def take(self, target: ObjectKey, data: DemandObserved) -> None:
        """Draw one report of a router in."""
        for demand in data.models:
            known = self._intervals.setdefault((demand.model, str(target)), deque())
            known.append(_Interval(data.interval_start_ms, data.router, demand))
            _forget(known, data.interval_start_ms - WINDOW_MS)

    def rows(self, now_ms: int) -> list[ModelRow]:
        """One row for each model and target with traffic in the window before `now_ms`."""
        rows = []
        for name, known in sorted(self._intervals.items()):
            _forget(known, now_ms - WINDOW_MS)
            recent = [item for item in known if item.start_ms <= now_ms]
            if recent:
                rows.append(_row(*name, recent))
        self._intervals = {name: known for name, known in self._intervals.items() if known}
        return rows


def _forget(known: deque[_Interval], before_ms: int) -> None:
    while known and known[0].start_ms <= before_ms:
        known.popleft()


def _row(model: str, target: str, recent: Iterable[_Interval]) -> ModelRow:
    demands = [item.demand for item in recent]
    latest = {item.router: item.demand for item in sorted(recent, key=lambda item: item.start_ms)}
    ttft = merged(demand.ttft_ms_buckets for demand in demands)
    seconds = WINDOW_MS / 1000
    return ModelRow(
        model=model,
        target=target,
        requests_per_second=sum(demand.arrivals for demand in demands) / seconds,
        errors_per_second=sum(demand.errors for demand in demands) / seconds,
        output_tokens_per_second=sum(demand.output_tokens for demand in demands) / seconds,
        queued=sum(demand.queued for demand in latest.values()),
        in_flight=sum(demand.in_flight for demand in latest.values()),
        ttft_p50_ms=quantile_ms(ttft, 0.5),
        ttft_p99_ms=quantile_ms(ttft, 0.99),
    )
