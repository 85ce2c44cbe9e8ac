"""How often a measurement is made: once, and again when a noisy one misses its limit.

The machine may be busy with other work, which makes times and CPU worse and never better; so a
missed limit is looked at again, a few times and only while there is time to spare. What no noise
explains (a refused connection) is never measured again.
"""

import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from tests.bench.figure import Figure, Outcome, outcomes

MOST_ATTEMPTS = 3

Measure = Callable[[], Awaitable[Sequence[Figure]]]


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """One way to come by figures."""

    name: str
    measure: Measure
    noisy: bool = True
    """Whether other work on the machine can make it miss its limits."""
    promised: bool = True
    """Whether it is made when nothing is named: its limits hold, and are to go on holding."""


@dataclass
class SpareTime:
    """What all measurements together may take for looking again."""

    seconds: float


async def attempt(
    measurement: Measurement, spare: SpareTime, clock: Callable[[], float] = time.monotonic
) -> list[Outcome]:
    """The figures of one measurement.

    It is made again where a limit is missed and the time to spare is enough for another attempt as
    long as the last one; that time is then taken from it.
    """
    most = MOST_ATTEMPTS if measurement.noisy else 1
    made: list[Sequence[Figure]] = []
    while True:
        began = clock()
        made.append(await measurement.measure())
        took = clock() - began
        if len(made) > 1:
            spare.seconds -= took
        found = outcomes(made)
        missed = not all(outcome.holds for outcome in found)
        if not missed or len(made) >= most or spare.seconds < took:
            return found
