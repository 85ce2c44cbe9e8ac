"""When something is measured again."""

from collections.abc import Sequence

import pytest

from tests.bench.attempts import Measurement, attempt
from tests.bench.builders import figure
from tests.bench.figure import Figure


class Measured:
    """A measurement that gives these values one after the other, each taking a second."""

    def __init__(self, *values: float) -> None:
        self._values = list(values)
        self.now = 0.0

    async def measure(self) -> Sequence[Figure]:
        self.now += 1
        return [figure(self._values.pop(0))]


async def _values(measured: Measured, *, noisy: bool = True, deadline: float = 99) -> list[float]:
    measurement = Measurement(name="memory", measure=measured.measure, noisy=noisy)
    (outcome,) = await attempt(measurement, deadline, lambda: measured.now)
    return [one.value for one in outcome.attempts]


@pytest.mark.parametrize(
    ("values", "made"),
    [((9, 1), [9]), ((11, 9, 1), [11, 9]), ((11, 12, 13, 1), [11, 12, 13])],
)
async def test_a_missed_limit_is_looked_at_again_three_times_at_most(
    values: tuple[float, ...], made: list[float]
) -> None:
    assert await _values(Measured(*values)) == made


async def test_what_noise_does_not_explain_is_measured_once() -> None:
    assert await _values(Measured(11, 9), noisy=False) == [11]


async def test_no_attempt_begins_behind_the_deadline_but_the_first() -> None:
    assert await _values(Measured(11, 12, 13), deadline=2) == [11, 12]
    assert await _values(Measured(11, 12, 13), deadline=0) == [11]
