"""Other controllers of the same objects."""

from datetime import UTC, datetime
from typing import Any

import pytest

from inferbus_workload_reconciler.policy_neighbours import (
    LONGEST_SKEW_MS,
    LeaseView,
    is_running,
    kthena_refusal,
    leader_worker_refusal,
    look_at_lease,
)

NOW_MS = 1_700_000_000_000
SECONDS = 15


def lease(renewed_ms: int, holder: str = "a") -> dict[str, Any]:
    renewed = datetime.fromtimestamp(renewed_ms / 1000, UTC).isoformat().replace("+00:00", "Z")
    spec = {"holderIdentity": holder, "renewTime": renewed, "leaseDurationSeconds": SECONDS}
    return {"spec": spec}


def test_a_running_controller_is_named_with_the_way_out() -> None:
    refusal = kthena_refusal(["b", "a"], "")
    assert "pod a runs" in refusal
    assert "INFERBUS_WORKLOAD_RECONCILER_BESIDE_KTHENA" in refusal
    assert "renews the lease" in kthena_refusal([], "holder")
    assert kthena_refusal([], "") == ""
    assert leader_worker_refusal("") == ""
    assert "holder" in leader_worker_refusal("holder")


@pytest.mark.parametrize(
    ("phase", "runs"),
    [("Pending", True), ("Running", True), ("Unknown", True), ("Succeeded", False)],
)
def test_a_pod_that_ended_controls_nothing(phase: str, runs: bool) -> None:
    assert is_running({"status": {"phase": phase}}) is runs


def test_a_lease_is_held_while_it_is_renewed_whatever_its_clock() -> None:
    view: LeaseView | None = None
    for step in range(5):
        behind = NOW_MS - 40_000 + step * 5_000
        view, holder = look_at_lease(view, lease(behind), NOW_MS + step * 5_000)
        assert holder == "a"


def test_a_lease_that_nobody_renews_runs_out() -> None:
    left = lease(NOW_MS)
    view, holder = look_at_lease(None, left, NOW_MS)
    assert holder == "a"
    view, holder = look_at_lease(view, left, NOW_MS + SECONDS * 1000)
    assert holder == "a"
    _, holder = look_at_lease(view, left, NOW_MS + SECONDS * 1000 + 1)
    assert holder == ""


def test_a_lease_that_ran_out_long_ago_holds_nobody_up() -> None:
    old = NOW_MS - SECONDS * 1000 - LONGEST_SKEW_MS - 1
    assert look_at_lease(None, lease(old), NOW_MS)[1] == ""
    assert look_at_lease(None, lease(old + 1), NOW_MS)[1] == "a"


@pytest.mark.parametrize("left", [None, {"spec": {}}, lease(NOW_MS, holder="")])
def test_a_lease_without_a_holder_is_nobodys(left: dict[str, Any] | None) -> None:
    assert look_at_lease(None, left, NOW_MS) == (LeaseView(), "")
