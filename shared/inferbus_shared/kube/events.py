"""core/v1 Events about objects: what `kubectl describe` shows.

Pure. Invariant: an event's name follows from what it says about which object, so that the same
event is counted up and not written again, by whichever instance and after any restart.
"""

import hashlib
from collections.abc import Mapping
from typing import Any

from inferbus_contracts.conditions import whole_seconds

MAX_MESSAGE_CHARACTERS = 1024
"""The longest note of events.k8s.io/v1, which shows the same events (`NoteLengthLimit`)."""


def about_of(document: Mapping[str, Any]) -> dict[str, Any]:
    """The reference that an event about an object bears."""
    metadata = document["metadata"]
    fields = {
        "apiVersion": document.get("apiVersion"),
        "kind": document.get("kind"),
        "namespace": metadata.get("namespace"),
        "name": metadata.get("name"),
        "uid": metadata.get("uid"),
        "resourceVersion": metadata.get("resourceVersion"),
    }
    return {name: value for name, value in fields.items() if value}


def event_name(about: Mapping[str, Any], reason: str, message: str, component: str) -> str:
    """The name of an event: the object's, shortened, and a digest of what is said."""
    said = "\0".join((str(about.get("uid", "")), reason, message, component))
    digest = hashlib.sha256(said.encode()).hexdigest()[:16]
    return f"{str(about['name'])[:200].rstrip('-.')}.{digest}"


def first_event(
    about: Mapping[str, Any],
    reason: str,
    message: str,
    component: str,
    *,
    warning: bool,
    now_ms: int,
) -> dict[str, Any]:
    """An event that is told for the first time; one about a cluster's object is in `default`."""
    now = whole_seconds(now_ms)
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {
            "name": event_name(about, reason, message, component),
            "namespace": str(about.get("namespace", "")) or "default",
        },
        "involvedObject": dict(about),
        "reason": reason,
        "message": message[:MAX_MESSAGE_CHARACTERS],
        "type": "Warning" if warning else "Normal",
        "source": {"component": component},
        "reportingComponent": component,
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 1,
    }


def next_event(known: Mapping[str, Any], now_ms: int) -> dict[str, Any]:
    """The merge patch that counts a known event up."""
    count = known.get("count")
    return {
        "count": (count if isinstance(count, int) else 1) + 1,
        "lastTimestamp": whole_seconds(now_ms),
    }
