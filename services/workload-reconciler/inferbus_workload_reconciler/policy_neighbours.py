"""Other controllers of the same objects, and whether we may act beside them.

Two controllers of one ModelServing would undo each other's work, so nothing is done while Kthena's
own runs: its pods, or a lease that it renews, show that.

Invariant: pure; as long as it isn't known whether another controller runs, nothing may be done.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

KTHENA_COMPONENT: Final = "kthena-controller-manager"
KTHENA_SELECTOR: Final = f"app.kubernetes.io/component={KTHENA_COMPONENT}"
"""What the pods of Kthena's controllers are labelled with (modelserving spec 6)."""
KTHENA_LEASE: Final = "lease.kthena.controller-manager"
"""Their lease where they elect a leader (modelserving spec 3.14)."""

LEADER_WORKER_LEASE: Final = "b8b2488c.x-k8s.io"
"""The lease of LeaderWorkerSet's controller, which elects a leader unless told otherwise; its pods
bear no label of their own (kubernetes-sigs/lws, `config/manager`)."""

LONGEST_SKEW_MS: Final = 60_000
"""How far clocks of a cluster may be apart before a lease is misjudged."""
DEFAULT_LEASE_SECONDS: Final = 15


def is_running(pod: Mapping[str, Any]) -> bool:
    """Whether a controller's pod runs, or is about to."""
    return (pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed")


def kthena_refusal(pods: Iterable[str], lease_holder: str) -> str:
    """Why nothing may be done; empty when Kthena's controllers aren't there.

    `pods` are names of its controllers' pods that run; `lease_holder` is who renews its lease.
    """
    running = sorted(pods)
    if running:
        seen = f"pod {running[0]} runs"
    elif lease_holder:
        seen = f"{lease_holder} renews the lease {KTHENA_LEASE}"
    else:
        return ""
    return (
        f"Kthena's own controllers work on these objects ({seen}): scale {KTHENA_COMPONENT} to 0,"
        " or set INFERBUS_WORKLOAD_RECONCILER_BESIDE_KTHENA=true"
    )


def leader_worker_refusal(lease_holder: str) -> str:
    """Why no LeaderWorkerSet may be acted on; `lease_holder` renews its controller's lease."""
    if not lease_holder:
        return ""
    return f"LeaderWorkerSet's own controller works on it ({lease_holder} renews its lease)"


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
