"""Other controllers of the same objects, and whether we may act beside them.

Two controllers of one ModelServing would undo each other's work, so nothing is done while Kthena's
own runs: its pods, or a lease that it renews, show that.

Invariant: pure; as long as it isn't known whether another controller runs, nothing may be done.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

KTHENA_COMPONENT: Final = "kthena-controller-manager"
KTHENA_SELECTOR: Final = f"app.kubernetes.io/component={KTHENA_COMPONENT}"
"""What the pods of Kthena's controllers are labelled with (modelserving spec 6)."""
KTHENA_LEASE: Final = "lease.kthena.controller-manager"
"""Their lease where they elect a leader (modelserving spec 3.14)."""


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


def bridged_refusal(uid: str, owner_uid: str) -> str:
    """Why a LeaderWorkerSet isn't run; `owner_uid` is the controller of the ModelServing of its
    name, which Kthena makes of one (modelserving spec 5.1): its pods are the fleet."""
    if not owner_uid or owner_uid != uid:
        return ""
    return "the ModelServing that was made from it runs it; delete that to have it run as it is"
