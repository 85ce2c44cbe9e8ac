"""When something is measured again."""

from collections.abc import Sequence

import pytest

from tests.bench.attempts import Measurement, SpareTime, attempt
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


async def _values(
    measured: Measured, *, noisy: bool = True, spare: SpareTime | None = None
) -> list[float]:
    measurement = Measurement(name="memory", measure=measured.measure, noisy=noisy)
    (outcome,) = await attempt(measurement, spare or SpareTime(99), lambda: measured.now)
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


@pytest.mark.parametrize(
    ("seconds", "made"), [(0.5, [11]), (1, [11, 12]), (1.5, [11, 12]), (2, [11, 12, 13])]
)
async def test_looking_again_takes_no_more_than_there_is_to_spare(
    seconds: float, made: list[float]
) -> None:
    spare = SpareTime(seconds)
    assert await _values(Measured(11, 12, 13), spare=spare) == made
    assert spare.seconds == seconds - (len(made) - 1)
