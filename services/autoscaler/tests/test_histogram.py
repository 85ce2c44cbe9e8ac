"""The compat quantile against the table of autoscaling spec 6.5, by number."""

import math

import pytest

from inferbus_autoscaler.policy_histogram import Histogram, quantile
from inferbus_contracts.errors import ProblemsError

INF = math.inf
EMPTY = Histogram()
T103_PAST = Histogram([(0.5, 2), (0.75, 4), (INF, 5)], 5)
T105_NOW = Histogram([(0.1, 50), (0.5, 90), (1, 98), (INF, 100)], 100)

VALUES = {
    "AS_T102": ((95, Histogram([(0.5, 2), (0.75, 4), (INF, 8)], 8), EMPTY), 1.5),
    "AS_T103": ((50, Histogram([(0.5, 2), (0.75, 9), (INF, 10)], 10), T103_PAST), 0.65),
    "AS_T104": ((1, Histogram([(0.5, 3), (0.75, 8), (INF, 10)], 10), T103_PAST), 0.5),
    "AS_T105": ((95, T105_NOW, EMPTY), 0.8125),
    "AS_T106": (
        (95, Histogram([(0.1, 150), (0.5, 290), (1, 398), (INF, 400)], 400), T105_NOW),
        0.925,
    ),
    "AS_T107": ((95, T105_NOW, T105_NOW), 0.0),
    "AS_T108": ((95, Histogram([(INF, 7)], 7), EMPTY), 0.0),
}

ERRORS = {
    "AS_T109": (
        (95, Histogram([(0.5, 4), (INF, 5)], 5), Histogram([(0.5, 8), (INF, 9)], 9)),
        "went down",
    ),
    "AS_T110": (
        (95, Histogram([(0.5, 4), (0.75, 5), (INF, 8)], 8), T103_PAST),
        "don't grow together",
    ),
    "AS_T111": (
        (95, Histogram([(0.5, 4), (INF, 8)], 8), T103_PAST),
        "changed the number of its buckets",
    ),
    "AS_T112": ((100, Histogram([(0.5, 90), (1, 98)], 100), EMPTY), "no bucket"),
}


@pytest.mark.parametrize("case", VALUES)
def test_values(case: str) -> None:
    arguments, expected = VALUES[case]
    assert quantile(*arguments) == expected


@pytest.mark.parametrize("case", ERRORS)
def test_errors(case: str) -> None:
    arguments, message = ERRORS[case]
    with pytest.raises(ProblemsError, match=message):
        quantile(*arguments)
