"""How many decisions a second the autoscaler's core makes by itself: one process, no bus.

The stories are those of a day: a wave with noise, steps between busy and idle, and a steady load,
each under no limits, under upstream's defaults and with a look-back in both directions; with the
answers of the reconciler and the timers that follow. With an objective in place of metrics, the
same stories are told second by second: what a router counts, and what the collector reads. They are
told once to collect every call of the core, and only these calls are timed, in CPU time.
"""

import math
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from inferbus_autoscaler.core import decide
from inferbus_autoscaler.events import Event
from inferbus_autoscaler.facts import Behaviour, Facts, StepPolicy
from inferbus_autoscaler.outcomes import Decide, Effect
from inferbus_autoscaler.state import TargetState
from services.autoscaler.tests.builders import FREE, WEBHOOK_DEFAULTS, Fleet, policy
from services.autoscaler.tests.objective_world import Town
from tests.bench.figure import Detail, Figure

LEAST = 10_000.0
SAMPLES = 400
"""Of each story, one every 15 s: 100 minutes."""
ROUNDS = 5
SEED = 17
LOOK_BACK = Behaviour(
    scale_up=StepPolicy(stabilisation_ms=60_000),
    scale_down=StepPolicy(period_ms=60_000, stabilisation_ms=300_000),
)
BEHAVIOURS = {"none": FREE, "upstream's": WEBHOOK_DEFAULTS, "look-back": LOOK_BACK}
LOOK_SECONDS = 5
"""Every so often the load of an objective's story changes: 33 minutes of each."""
REQUESTS_PER_LOAD = 0.1
"""Requests per second of an objective's story: a replica serves as much load in either case."""

Call = tuple[TargetState, Event, Facts, int]
"""The arguments of `decide`."""


class _Recorded(Fleet):
    """A fleet that keeps every call of the core."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.calls: list[Call] = []

    def feed(self, event: Event, **changes: Any) -> tuple[Effect, ...]:
        self.calls.append((self.state, event, self.facts(**changes), self.now_ms))
        return super().feed(event, **changes)


async def measure() -> list[Figure]:
    """By metrics and by an objective."""
    return [
        _figure(
            "core-rate",
            list(_calls()),
            "samples, answers and timers of whole stories",
            {"behaviours": ", ".join(BEHAVIOURS), "samples of each": SAMPLES},
        ),
        _figure(
            "core-rate-objective",
            list(_calls_by_objective()),
            "zero tuning: counters of a router every second, samples, answers and timers of whole "
            "stories under an objective without metrics",
            {"objective": "wait=2s@99.5%", "seconds of each": SAMPLES * LOOK_SECONDS},
        ),
    ]


def _figure(
    name: str, calls: Sequence[Call], told: str, configuration: Mapping[str, Detail]
) -> Figure:
    """The rate over all calls; beside it over those that change the state, and that are said."""
    changing = [call for call in calls if decide(*call)[0] is not call[0]]
    said = [call for call in calls if any(isinstance(one, Decide) for one in decide(*call)[1])]
    return Figure(
        name=name,
        value=round(_rate(calls)),
        unit="decisions/s",
        limit=LEAST,
        more_is_better=True,
        meaning=f"the autoscaler's pure core in one process, CPU time: {told}, each decided about "
        "from its state",
        configuration={"stories": "wave, steps, steady", **configuration, "seed": SEED},
        detail={
            "calls": len(calls),
            "changing_percent": round(100 * len(changing) / len(calls), 1),
            "changing_per_second": round(_rate(changing)),
            "said_percent": round(100 * len(said) / len(calls), 1),
            "said_per_second": round(_rate(said)),
        },
    )


def _rate(calls: Sequence[Call]) -> float:
    """Calls a second of the best round: what else the machine does only makes it slower."""
    seconds = []
    for _ in range(ROUNDS):
        began = time.process_time()
        for call in calls:
            decide(*call)
        seconds.append(time.process_time() - began)
    return len(calls) / min(seconds)


def _calls() -> Iterator[Call]:
    for behaviour in BEHAVIOURS.values():
        for loads in _stories():
            fleet = _Recorded(5, policy(behaviour=behaviour))
            fleet.run(loads)
            yield from fleet.calls


def _calls_by_objective() -> Iterator[Call]:
    for loads in _stories():
        town = Town(5)
        fleet = _Recorded(5, town.fleet.policy)
        town.fleet = fleet
        for load in loads:
            town.run(LOOK_SECONDS, round(load * REQUESTS_PER_LOAD))
        yield from fleet.calls


def _stories() -> Iterator[list[float]]:
    chance = random.Random(SEED)
    yield [300 + 250 * math.sin(n / 40) + chance.gauss(0, 25) for n in range(SAMPLES)]
    yield [chance.choice((10.0, 100.0, 700.0)) for _ in range(SAMPLES)]
    yield [200 + chance.gauss(0, 2) for _ in range(SAMPLES)]
