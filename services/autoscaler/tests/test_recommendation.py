"""The compat recommendation against the table of autoscaling spec 6.1, by number."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferbus_autoscaler.policy_recommendation import (
    MOST_WANTED,
    RecommendationInput,
    ceiling,
    divide,
    recommend,
)

TEN = {"m": 10.0}
ONE = {"m": 1.0}
TWO_METRICS = {"a": 10.0, "b": 2.0}
MISSING = None


def rec(
    low: int,
    high: int,
    current: int,
    tolerance: int,
    targets: Mapping[str, float] = TEN,
    entries: Sequence[float | Mapping[str, float] | None] = (),
    unready: int = 0,
    external: Mapping[str, float] | None = None,
) -> int | None:
    """Entries are sums of the metric `m`, maps of several metrics, or None for a missing one."""
    maps = [
        {} if entry is None else entry if isinstance(entry, Mapping) else {"m": float(entry)}
        for entry in entries
    ]
    return recommend(
        RecommendationInput(
            min_replicas=low,
            max_replicas=high,
            current=current,
            tolerance_percent=tolerance,
            targets=targets,
            entries=maps,
            unready_pods=unready,
            external_totals=external or {},
        )
    )


CASES: dict[str, tuple[tuple[Any, ...], int | None]] = {
    "AS_T01": ((5, 10, 4, 10), 5),
    "AS_T02": ((5, 10, 11, 10), 10),
    "AS_T03": ((5, 10, 7, 10), None),
    "AS_T04": ((1, 100, 10, 10, TEN, [10]), 10),
    "AS_T05": ((1, 100, 10, 10, TEN, [11]), 2),
    "AS_T06": ((1, 100, 10, 10, TEN, [9]), 10),
    "AS_T07": ((1, 100, 10, 10, TEN, [101]), 11),
    "AS_T08": ((1, 100, 10, 10, TEN, [95]), 10),
    "AS_T09": ((0, 100, 10, 10, TEN, [0]), 0),
    "AS_T10a": ((1, 100, 10, 100, TEN, [20]), 10),
    "AS_T10b": ((1, 100, 10, 100, TEN, [21]), 3),
    "AS_T10c": ((0, 100, 10, 100, TEN, [0]), 10),
    "AS_T11": ((1, 100, 10, 10, TEN, [35]), 4),
    "AS_T12": ((1, 100, 10, 10, TEN, [35], 2), 10),
    "AS_T13": ((1, 100, 3, 10, TEN, [25], 2), 3),
    "AS_T14": ((1, 100, 3, 10, TEN, [32], 2), 3),
    "AS_T15": ((1, 100, 3, 10, TEN, [45], 2), 5),
    "AS_T16": ((1, 100, 3, 10, TEN, [5], 2), 1),
    "AS_T17": ((1, 100, 18, 0, ONE, [3.9] * 8, 10), 32),
    "AS_T18": ((1, 100, 58, 0, ONE, [3.9] * 8, 50), 58),
    "AS_T19": ((1, 100, 10, 0, ONE, [MISSING] * 2 + [0.5] * 8), 6),
    "AS_T20": ((1, 100, 10, 0, ONE, [MISSING] * 2 + [2.9] * 8), 24),
    "AS_T21": ((1, 100, 3, 10, TEN, [5, MISSING]), 2),
    "AS_T22": ((1, 100, 1, 10, TEN, [5, MISSING]), 1),
    "AS_T23": ((2, 20, 10, 0, TEN, [MISSING, 1]), 2),
    "AS_T24": ((1, 100, 6, 10, TEN, [38, 45]), 9),
    "AS_T25": ((1, 100, 6, 10, TEN, [12, 9]), 6),
    "AS_T26a": ((1, 100, 10, 10, TEN, [], 0, {"m": 110.0}), 11),
    "AS_T26b": ((1, 100, 10, 10, TEN, [], 0, {"m": 109.0}), 10),
    "AS_T26c": ((1, 100, 10, 10, TEN, [], 0, {"m": 90.0}), 10),
    "AS_T27": ((1, 100, 4, 10, {"m": 80.0}, [], 0, {"m": 62.5}), 1),
    "AS_T28": ((1, 100, 4, 10, {"m": 80.0}, [], 0, {"m": 95.0}), 2),
    "AS_T29a": ((1, 100, 10, 51, {"m": 3.0}, [], 0, {"m": 14.9}), 10),
    "AS_T29b": ((1, 100, 10, 49, {"m": 3.0}, [], 0, {"m": 14.9}), 5),
    "AS_T29c": ((1, 100, 10, 49, {"m": 3.0}, [], 0, {"m": 44.9}), 15),
    "AS_T30a": ((0, 100, 0, 10, TEN, [], 0, {"m": 25.0}), 3),
    "AS_T30b": ((0, 100, 0, 10, TEN, [], 0, {"m": 0.0}), 0),
    "AS_T31": ((1, 100, 5, 10, TWO_METRICS, [{"a": 33.0, "b": 17.0}]), 9),
    "AS_T32": ((1, 100, 5, 10, TWO_METRICS, [{"a": 33.0}]), 4),
    "AS_T33": ((1, 100, 8, 10, TWO_METRICS, [{"a": 33.0, "b": 2.1}]), 8),
    "AS_T34": ((1, 100, 5, 10, TEN, [90], 0, {"m": 70.0}), 7),
    "AS_T35a": ((1, 100, 1, 0, {"m": 0.0}, [1]), 100),
    "AS_T35b": ((1, 100, 1, 0, {"m": 1e-100}, [1e100]), 100),
    "AS_T36": ((1, 100, 2, 0, {"m": 0.7}, [], 0, {"m": 2.1}), 4),
    "AS_T37a": ((1, 100, 2, 0, {"m": 0.7}, [3.5]), 5),
    "AS_T37b": ((1, 100, 2, 0, {"m": 0.7}, [3.5, 0, 0]), 6),
    "AS_T38a": ((1, 20, 8, 10, TEN, [math.nan]), 1),
    "AS_T38b": ((1, 20, 8, 10, TEN, [math.inf]), 20),
    "AS_T38c": ((1, 20, 8, 10, TEN, [-5]), 1),
    "AS_T39": ((1, 100, 3, 0, ONE, [19.1, 3.1, 7.1]), 30),
    "AS_T40": ((0, 100, 4, 10, TEN, [0.000001]), 1),
}


@pytest.mark.parametrize("case", CASES)
def test_table(case: str) -> None:
    arguments, expected = CASES[case]
    assert rec(*arguments) == expected


def test_the_tolerance_is_multiplied_as_upstream_does() -> None:
    """57 * 0.01 is 0.5700000000000001: a ratio of 1.57 is inside, with 57 / 100 it is not."""
    assert abs(1.57 - 1) > 57 / 100
    assert rec(1, 100, 100, 57, ONE, [], 0, {"m": 157.0}) == 100


@given(
    values=st.lists(st.floats(allow_nan=True, allow_infinity=True) | st.none(), max_size=4),
    low=st.integers(0, 50),
    span=st.integers(0, 50),
    current=st.integers(0, 200),
    tolerance=st.integers(0, 100),
    unready=st.integers(0, 5),
    external=st.floats(allow_nan=True, allow_infinity=True) | st.none(),
)
def test_any_input_gives_a_number_inside_the_bounds_or_none(
    values: list[float | None],
    low: int,
    span: int,
    current: int,
    tolerance: int,
    unready: int,
    external: float | None,
) -> None:
    totals = {} if external is None else {"m": external}
    want = rec(low, low + span, current, tolerance, TEN, values, unready, totals)
    assert want is None or low <= want <= low + span


@pytest.mark.parametrize(
    ("numerator", "denominator", "quotient"),
    [(1.0, 0.0, math.inf), (-1.0, 0.0, -math.inf), (1.0, -0.0, -math.inf), (6.0, 3.0, 2.0)],
)
def test_division_follows_ieee_754(numerator: float, denominator: float, quotient: float) -> None:
    assert divide(numerator, denominator) == quotient


def test_zero_by_zero_is_not_a_number() -> None:
    assert math.isnan(divide(0.0, 0.0))


@pytest.mark.parametrize(
    ("replicas", "whole"),
    [
        (math.nan, 0),
        (-0.5, 0),
        (0.2, 1),
        (3.0, 3),
        (math.inf, MOST_WANTED),
        (-math.inf, 0),
        (2e9, MOST_WANTED),
    ],
)
def test_ceiling(replicas: float, whole: int) -> None:
    assert ceiling(replicas) == whole
