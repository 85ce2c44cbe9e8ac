"""Other controllers of the same objects."""

import pytest

from inferbus_workload_reconciler.policy_neighbours import is_running, kthena_refusal


def test_a_running_controller_is_named_with_the_way_out() -> None:
    refusal = kthena_refusal(["b", "a"], "")
    assert "pod a runs" in refusal
    assert "INFERBUS_WORKLOAD_RECONCILER_BESIDE_KTHENA" in refusal
    assert "renews the lease" in kthena_refusal([], "holder")
    assert kthena_refusal([], "") == ""


@pytest.mark.parametrize(
    ("phase", "runs"),
    [("Pending", True), ("Running", True), ("Unknown", True), ("Succeeded", False)],
)
def test_a_pod_that_ended_controls_nothing(phase: str, runs: bool) -> None:
    assert is_running({"status": {"phase": phase}}) is runs
