"""A real trace through the whole platform on a faster clock, scaled by an objective alone.

Router, services and simulated engines are those of `inferbus up`; the policy names no metric and no
capacity, only when the first token has to be there. All times are the fleet's own: what this
machine adds to a latency counts as many times as its clock is faster. The trace comes in bursts
after silence (code completion), which nobody foresees, and the first of them meets one replica
whose capacity nobody knows. Invariant: the limit is below what is measured, not what the objective
asks for; how far that was kept stands beside it.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console

from inferbus_contracts.events.scaling import ScalingDecided
from inferbus_contracts.resources.annotations import parse_objective
from inferbus_engine_simulator.policy_accelerators import ACCELERATORS, step_timing
from inferbus_engine_simulator.policy_models import guess_shape
from inferbus_shared.bus.bus import Bus
from inferbus_shared.bus.follow import Start
from tests.bench.configuration import configuration
from tests.bench.figure import Detail, Figure, quantile
from tests.bench.fleet import objective_model, workload_key
from tests.bench.trace_account import attained_percent, direction_changes, needed_replica_seconds
from tests.scenario.demo.measured import Measured
from tests.scenario.demo.performance import Performance
from tests.scenario.demo.program import START_MS, TRACE_FILE
from tests.scenario.demo.screen import Screen
from tests.scenario.demo.summary import ModelTotal
from tests.scenario.demo.targets import Target
from tests.scenario.demo.trace import REAL, Trace, read_trace, stretch
from tests.scenario.demo.traffic import Traffic
from tests.support.eventually import eventually
from tests.support.platform import Platform, running_platform

LEAST_PERCENT = 75.0
SETTLED_MS = 5 * 60_000
"""From then on the fleet has seen a burst."""
MODEL = "coder"
OBJECTIVE = "ttft=5s@95%"
BOUNDS = (1, 12)
CLOCK_RATE = 15
LENGTH_MS = 20 * 60_000
STARTUP_SECONDS = 30
ACCELERATOR = "a10"
BILLIONS = 7.0
SETTINGS = {
    "INFERBUS_ENGINE_SIMULATOR_ACCELERATOR": ACCELERATOR,
    "INFERBUS_ENGINE_SIMULATOR_MODEL_BILLIONS": str(BILLIONS),
}
READY_SECONDS = 60.0


@dataclass(frozen=True, kw_only=True)
class _Played:
    """What the platform made of the trace."""

    total: ModelTotal
    until_ms: float
    """The fleet's time when the last request was answered."""
    latest_ms: float
    """How late the latest request went out."""
    decided: Sequence[int]
    """The replicas that were decided on, in order."""


async def measure() -> list[Figure]:
    """A third of the trace, once; nothing where the trace isn't beside the checkout."""
    if not TRACE_FILE.exists():
        sys.stderr.write(f"azure-trace is left out: there is no {TRACE_FILE}\n")
        return []
    whole = read_trace(TRACE_FILE)
    trace = stretch(whole, START_MS, LENGTH_MS)
    options = ("--clock-rate", str(CLOCK_RATE), "--startup", str(STARTUP_SECONDS))
    with running_platform(*options, environment=SETTINGS) as platform:
        platform.apply(*objective_model(MODEL, OBJECTIVE, bounds=BOUNDS))
        await eventually(lambda: platform.complete(MODEL).status == 200, READY_SECONDS)
        played = await _play(platform, trace)
        load = configuration(
            platform.directory, objective=OBJECTIVE, bounds=f"{BOUNDS[0]} to {BOUNDS[1]}"
        )
    share = 100 * len(trace.requests) / len(whole.requests)
    load |= {
        "trace": REAL,
        "share": f"{len(trace.requests)} requests, {share:.0f} % of it",
        "engine": f"{BILLIONS:g} billion parameters on {ACCELERATOR}",
    }
    return [_attainment(played, trace, load), _refused(played.total.measured, load)]


async def _play(platform: Platform, trace: Trace) -> _Played:
    target = Target(model=MODEL, api="Kthena", key=workload_key(MODEL), max_replicas=BOUNDS[1])
    traffic = Traffic(platform.router, [MODEL], CLOCK_RATE)
    async with platform.bus() as bus:
        silent = Screen(Console(quiet=True), None)
        performance = Performance(bus, traffic, [target], silent, trace)
        await performance.run()
        (total,) = performance.totals
        return _Played(
            total=total,
            until_ms=traffic.now_ms,
            latest_ms=traffic.latest_ms,
            decided=await _decided(bus, target),
        )


async def _decided(bus: Bus, target: Target) -> list[int]:
    numbers = []
    async for message in bus.follow(ScalingDecided.event_type, Start.everything()).snapshot():
        event = await bus.read(message)
        if event.key == target.key and isinstance(event.data, ScalingDecided):
            numbers.append(event.data.desired)
    return numbers


def _attainment(played: _Played, trace: Trace, load: dict[str, Detail]) -> Figure:
    total, objective = played.total, parse_objective(OBJECTIVE)
    answers = total.measured.answers
    settled = [one for one in answers if one.sent_ms >= SETTLED_MS]
    first_tokens = [one.first_token_ms for one in answers if one.first_token_ms is not None]
    used = total.replicas.replica_seconds(played.until_ms)
    timing = step_timing(ACCELERATORS[ACCELERATOR], guess_shape((), BILLIONS))
    needed = needed_replica_seconds(trace.requests, trace.length_ms, timing.compute_token_us)
    return Figure(
        name="azure-trace",
        value=round(attained_percent(answers, objective.limit_ms), 2),
        unit="% in time",
        limit=LEAST_PERCENT,
        more_is_better=True,
        meaning="requests of a real, bursty trace whose first token came within the objective's "
        "limit, through router, services and simulated engines; the fleet's own time",
        configuration=load,
        detail={
            "asked_percent": objective.percent,
            "after_5_minutes_percent": round(attained_percent(settled, objective.limit_ms), 2),
            "ttft_p50_ms": round(quantile(first_tokens, 0.5)),
            "ttft_p95_ms": round(quantile(first_tokens, 0.95)),
            "latest_sent_ms": round(played.latest_ms),
            "replicas": f"{total.replicas.least} to {total.replicas.most}",
            "replica_seconds": round(used),
            "needed_replica_seconds": round(needed),
            "over_need": round(used / needed, 2),
            "decisions": total.decisions,
            "direction_changes": direction_changes(played.decided),
        },
    )


def _refused(measured: Measured, load: dict[str, Detail]) -> Figure:
    errors = measured.errors
    return Figure(
        name="azure-trace-refused",
        value=errors.total(),
        unit="requests",
        limit=0,
        meaning="requests of that trace that were refused, cut off or never answered",
        configuration=load,
        detail={"sent": measured.sent, **dict(errors.most_common())},
    )
