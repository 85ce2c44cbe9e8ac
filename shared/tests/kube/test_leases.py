"""Leases of other programs."""

from datetime import UTC, datetime
from typing import Any

import pytest

from inferbus_shared.kube.leases import LONGEST_SKEW_MS, LeaseView, look_at_lease

NOW_MS = 1_700_000_000_000
SECONDS = 15


def lease(renewed_ms: int, holder: str = "a") -> dict[str, Any]:
    renewed = datetime.fromtimestamp(renewed_ms / 1000, UTC).isoformat().replace("+00:00", "Z")
    spec = {"holderIdentity": holder, "renewTime": renewed, "leaseDurationSeconds": SECONDS}
    return {"spec": spec}


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
