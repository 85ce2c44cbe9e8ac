"""How often a measurement is made: once, and again when a noisy one misses its limit.

The machine may be busy with other work, which makes times and CPU worse and never better; so a
missed limit is looked at again, a few times and only while there is time. What no noise explains (a
refused connection) is never measured again.
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


async def attempt(
    measurement: Measurement, deadline: float, clock: Callable[[], float] = time.monotonic
) -> list[Outcome]:
    """The figures of one measurement; no attempt after the first begins behind `deadline`."""
    made: list[Sequence[Figure]] = []
    while True:
        made.append(await measurement.measure())
        found = outcomes(made)
        enough = len(made) >= (MOST_ATTEMPTS if measurement.noisy else 1)
        if enough or clock() >= deadline or all(outcome.holds for outcome in found):
            return found
