"""Workloads as their owners see them."""

from collections.abc import Mapping
from typing import Any

from inferbus_shared.objects.picture import StoredObject

AVAILABLE = "Available"


def is_available(stored: StoredObject | None) -> bool:
    """Whether the newest generation of a workload has all its replicas running.

    A controller that tells no `observedGeneration` is taken at its word.
    """
    if stored is None:
        return False
    status = stored.object.get("status") or {}
    seen = status.get("observedGeneration")
    is_current = seen is None or int(seen) >= stored.generation
    return is_current and has_condition(status, AVAILABLE)


def has_condition(status: Mapping[str, Any], type_: str) -> bool:
    """Whether a condition of this type is True."""
    return any(
        one.get("type") == type_ and one.get("status") == "True"
        for one in status.get("conditions") or ()
    )


def count(stored: StoredObject | None, name: str) -> int:
    """A number in the status of an object, 0 where it isn't there."""
    status = (stored.object.get("status") if stored else None) or {}
    return int(status.get(name) or 0)
