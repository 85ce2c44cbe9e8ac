"""Whether somebody renews a lease, seen from outside of its election.

Invariant: pure, and no clock of the holder's is believed: a lease is held for its duration after
each renewal that was seen, by our own clock.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from inferbus_shared.kube.resources import ApiResource

LEASE: Final = ApiResource("coordination.k8s.io", "v1", "leases", "Lease")

LONGEST_SKEW_MS: Final = 60_000
"""How far clocks of a cluster may be apart before a lease is misjudged."""
DEFAULT_LEASE_SECONDS: Final = 15


@dataclass(frozen=True, slots=True)
class LeaseView:
    """A lease as it was last looked at."""

    renewed: str = ""
    """Its renewTime as written."""
    changed_ms: int = 0
    """When that was first seen to have changed, by our own clock."""


def look_at_lease(
    before: LeaseView | None, lease: Mapping[str, Any] | None, now_ms: int
) -> tuple[LeaseView, str]:
    """The lease after another look, and its holder; empty when nobody holds it.

    A lease counts as held for its duration after each renewal that was seen, whatever the holder's
    clock says (client-go, `leaderelection`). One that is first seen counts as just renewed, unless
    it ran out long ago.
    """
    spec = (lease or {}).get("spec") or {}
    holder, renewed = spec.get("holderIdentity") or "", spec.get("renewTime") or ""
    if not holder or not renewed:
        return LeaseView(), ""
    duration_ms = 1000 * int(spec.get("leaseDurationSeconds") or DEFAULT_LEASE_SECONDS)
    renewed_ms = round(datetime.fromisoformat(renewed).timestamp() * 1000)
    if before is not None and before.renewed == renewed:
        view = before
    elif before is None and now_ms - renewed_ms > duration_ms + LONGEST_SKEW_MS:
        view = LeaseView(renewed, renewed_ms)
    else:
        view = LeaseView(renewed, now_ms)
    return view, holder if now_ms - view.changed_ms <= duration_ms else ""
