"""What a delete asks for.

Pure. (Kubernetes API, meta/v1 `DeleteOptions`)
"""

from typing import Any


def delete_options(uid: str, grace_period_seconds: int | None, propagation: str) -> dict[str, Any]:
    """The body of a delete: only of that uid if given, after the object's own grace period or ours.

    `propagation` is what becomes of what the object owns: Background, Foreground or Orphan.
    """
    options: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "propagationPolicy": propagation,
    }
    if uid:
        options["preconditions"] = {"uid": uid}
    if grace_period_seconds is not None:
        options["gracePeriodSeconds"] = grace_period_seconds
    return options
