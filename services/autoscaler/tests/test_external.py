"""Totals of external metrics against the table of autoscaling spec 6.5, by number."""

import pytest

from inferbus_autoscaler.policy_external import aggregate_external

CASES = {
    "AS_T118": ("gpu_utilization", [60.0, 70.0], [3, 1], 62.5),
    "AS_T119": ("queue_length", [100.0, 200.0], [1, 1], 300.0),
    "AS_T120": ("cache_usage", [60.0, 80.0], [0, 0], 70.0),
    "AS_T121": ("gpu_utilization", [60.0, 80.0], [0, 5], 80.0),
    "AS_T122": ("gpu_cache_usage_perc", [0.5, 0.7], [1, 1], 1.2),
    "AS_T123": ("gpu_utilization_rate", [50.0, 70.0], [1, 1], 120.0),
    "upper case": ("GPU_UTILIZATION", [60.0, 70.0], [3, 1], 62.5),
}


@pytest.mark.parametrize("case", CASES)
def test_table(case: str) -> None:
    name, values, replicas, expected = CASES[case]
    assert aggregate_external(name, values, replicas) == expected


def test_additions_are_plain_and_from_left_to_right() -> None:
    """A compensated sum would give 0.6."""
    assert aggregate_external("load", [0.1, 0.2, 0.3], [1, 1, 1]) == 0.6000000000000001
