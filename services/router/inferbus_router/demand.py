"""What clients ask for, added up per second, scale target and model.

Nothing per request leaves the router (DESIGN, principle 7): this is what the autoscaler sees of
traffic. Invariant: what happens inside one interval is told exactly once, in that interval's
event; an interval in which nothing happened and nothing ran is not told at all. What an event has
counted since the router started stands in it too, so that a reader may leave some out.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from inferbus_contracts.events.demand import (
    LATENCY_BOUNDS_MS,
    DemandObserved,
    DemandSummed,
    DemandTotals,
    ModelDemand,
)
from inferbus_contracts.keys import ObjectKey

SECOND_MS = 1_000
SUM_MS = 10_000
_BUCKETS = len(LATENCY_BOUNDS_MS) + 1


class DemandCell:
    """The running interval of one target and model.

    The two levels are what waits and runs now; whoever raises one lowers it again.
    """

    __slots__ = (
        "_told_level",
        "arrivals",
        "completions",
        "duration_buckets",
        "errors",
        "in_flight",
        "model",
        "output_tokens",
        "prompt_tokens",
        "queued",
        "target",
        "ttft_buckets",
    )

    def __init__(self, target: ObjectKey, model: str) -> None:
        self.target = target
        self.model = model
        self.queued = 0
        self.in_flight = 0
        self._told_level = 0
        self._clear()

    def _clear(self) -> None:
        self.arrivals = 0
        self.completions = 0
        self.errors = 0
        self.prompt_tokens = 0
        self.output_tokens = 0
        self.ttft_buckets = [0] * _BUCKETS
        self.duration_buckets = [0] * _BUCKETS

    @property
    def is_in_use(self) -> bool:
        """Something was added that isn't told yet, or something waits or runs."""
        level = self.queued + self.in_flight
        return bool(level or self._told_level or self.arrivals or self.completions or self.errors)

    def take(self) -> ModelDemand | None:
        """The interval's event data, and a new interval; None where there was no traffic."""
        if not self.is_in_use:
            return None
        self._told_level = self.queued + self.in_flight
        taken = ModelDemand(
            model=self.model,
            arrivals=self.arrivals,
            completions=self.completions,
            errors=self.errors,
            prompt_tokens=self.prompt_tokens,
            output_tokens=self.output_tokens,
            queued=self.queued,
            in_flight=self.in_flight,
            ttft_ms_buckets=self.ttft_buckets,
            duration_ms_buckets=self.duration_buckets,
        )
        self._clear()
        return taken


@dataclass(frozen=True, slots=True)
class TargetDemand:
    """A second to tell, and what it is keyed by."""

    target: ObjectKey
    data: DemandObserved


@dataclass(frozen=True, slots=True)
class TargetSum:
    """Ten seconds to tell, and what they are keyed by."""

    target: ObjectKey
    data: DemandSummed


class DemandAccumulator:
    """The running second of all targets, and the seconds that are over and not taken yet."""

    def __init__(self, router: str, now_ms: int) -> None:
        self._router = router
        self._cells: dict[tuple[ObjectKey, str], DemandCell] = {}
        self._start_ms = now_ms - now_ms % SECOND_MS
        self.ends_at_ms = self._start_ms + SECOND_MS
        """When `advance` has something to do next."""
        self._ended: list[TargetDemand] = []
        self._totals: dict[ObjectKey, DemandTotals] = {}

    def cell(self, target: ObjectKey, model: str) -> DemandCell:
        """The cell of a target and model; call `advance` before adding to it."""
        key = (target, model)
        cell = self._cells.get(key)
        if cell is None:
            cell = self._cells[key] = DemandCell(target, model)
        return cell

    def advance(self, now_ms: int) -> None:
        """End every second that is over; what is added afterwards belongs to the one of `now_ms`.

        A second that the clock jumps over is told once, with its levels; time that runs backwards
        changes nothing.
        """
        if now_ms < self.ends_at_ms:
            return
        self._end_interval()
        skipped_to_ms = now_ms - now_ms % SECOND_MS
        if skipped_to_ms > self.ends_at_ms:
            self._start_ms, self.ends_at_ms = skipped_to_ms - SECOND_MS, skipped_to_ms
            self._end_interval()
        self._start_ms, self.ends_at_ms = skipped_to_ms, skipped_to_ms + SECOND_MS

    def forget_idle(self) -> None:
        """Let go of the cells in which nothing is going on; nobody may hold one of those."""
        self._cells = {key: cell for key, cell in self._cells.items() if cell.is_in_use}

    def flush(self, now_ms: int) -> list[TargetDemand]:
        """The seconds that ended since the last call, oldest first."""
        self.advance(now_ms)
        ended, self._ended = self._ended, []
        return ended

    def _end_interval(self) -> None:
        models: dict[ObjectKey, list[ModelDemand]] = {}
        for cell in self._cells.values():
            taken = cell.take()
            if taken is not None:
                models.setdefault(cell.target, []).append(taken)
        for target in sorted(models):
            totals = _totals(self._totals.get(target) or _NOTHING, models[target])
            self._totals[target] = totals
            data = DemandObserved(
                router=self._router,
                interval_start_ms=self._start_ms,
                interval_ms=SECOND_MS,
                models=sorted(models[target], key=_model_name),
                totals=totals,
            )
            self._ended.append(TargetDemand(target, data))


class DemandSums:
    """Adds seconds up to ten of them, for what is kept for weeks."""

    def __init__(self, router: str) -> None:
        self._router = router
        self._open: dict[tuple[int, ObjectKey], dict[str, ModelDemand]] = {}

    def add(self, demands: Iterable[TargetDemand]) -> None:
        """Take in seconds; each belongs to the ten seconds its start lies in."""
        for demand in demands:
            start_ms = demand.data.interval_start_ms
            models = self._open.setdefault((start_ms - start_ms % SUM_MS, demand.target), {})
            for model in demand.data.models:
                earlier = models.get(model.model)
                models[model.model] = model if earlier is None else _sum(earlier, model)

    def flush(self, now_ms: int) -> list[TargetSum]:
        """The ten seconds that are over, oldest first; call it after adding the seconds until
        then.
        """
        ended = sorted(key for key in self._open if key[0] + SUM_MS <= now_ms)
        return [self._take(start_ms, target) for start_ms, target in ended]

    def _take(self, start_ms: int, target: ObjectKey) -> TargetSum:
        models = self._open.pop((start_ms, target)).values()
        data = DemandSummed(
            router=self._router,
            interval_start_ms=start_ms,
            interval_ms=SUM_MS,
            models=sorted(models, key=_model_name),
        )
        return TargetSum(target, data)


def _model_name(demand: ModelDemand) -> str:
    return demand.model


def _sum(earlier: ModelDemand, later: ModelDemand) -> ModelDemand:
    """Counts add up; levels are those at the end."""
    return ModelDemand(
        model=later.model,
        arrivals=earlier.arrivals + later.arrivals,
        completions=earlier.completions + later.completions,
        errors=earlier.errors + later.errors,
        prompt_tokens=earlier.prompt_tokens + later.prompt_tokens,
        output_tokens=earlier.output_tokens + later.output_tokens,
        queued=later.queued,
        in_flight=later.in_flight,
        ttft_ms_buckets=list(_added(earlier.ttft_ms_buckets, later.ttft_ms_buckets)),
        duration_ms_buckets=list(_added(earlier.duration_ms_buckets, later.duration_ms_buckets)),
    )


_NOTHING = DemandTotals(ttft_ms_buckets=[0] * _BUCKETS)


def _totals(before: DemandTotals, models: Iterable[ModelDemand]) -> DemandTotals:
    """The counters after one more interval."""
    after = before
    for model in models:
        after = DemandTotals(
            arrivals=after.arrivals + model.arrivals,
            completions=after.completions + model.completions,
            prompt_tokens=after.prompt_tokens + model.prompt_tokens,
            output_tokens=after.output_tokens + model.output_tokens,
            ttft_ms_buckets=list(_added(after.ttft_ms_buckets, model.ttft_ms_buckets)),
        )
    return after


def _added(earlier: list[int], later: list[int]) -> Iterator[int]:
    return (one + other for one, other in zip(earlier, later, strict=True))
