"""What the platform's appliers are called in `metadata.managedFields` of a cluster's objects.

Invariant: `manager_of(field_manager(name)) == name`, and whoever isn't the platform's keeps the
name it gave itself.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from inferbus_spec_watcher.policy_objects import SCALE_MANAGER, STAMP_MANAGER

PREFIX = "inferbus-"
STATUS_WRITER = f"{PREFIX}status"
"""Who writes the status subresource for the platform."""

_CLIENT_SIDE_APPLY = frozenset({"kubectl-client-side-apply", "kubectl-last-applied"})
"""`kubectl apply` without `--server-side`: an Update in the eyes of the server."""


def field_manager(manager: str) -> str:
    """The name in `managedFields`; that of scaling is the same for every service that scales."""
    return manager if manager == SCALE_MANAGER else f"{PREFIX}{manager}"


def manager_of(name: str) -> str:
    """The manager that a name in `managedFields` stands for."""
    return name.removeprefix(PREFIX)


def is_own(name: str) -> bool:
    """Whether it is one of the platform's appliers."""
    return name.startswith(PREFIX) or name == SCALE_MANAGER


def spec_entries(managed: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The entries about what people and appliers decide: all but those about the status."""
    return [one for one in managed if one.get("subresource") != "status"]


def last_change(managed: Iterable[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """The entry of the last change that somebody decided on; stamps are nobody's decision.

    Times are whole seconds; among equal ones the server's own order decides, so that every reader
    finds the same.
    """
    stamps = field_manager(STAMP_MANAGER)
    decided = [one for one in spec_entries(managed) if one.get("manager") != stamps]
    numbered = enumerate(decided)
    return max(numbered, key=lambda one: (str(one[1].get("time", "")), one[0]), default=(0, None))[
        1
    ]


def foreign_appliers(managed: Iterable[Mapping[str, Any]]) -> frozenset[str]:
    """Who else applies manifests of this object; whoever only edits or patches it does not."""
    return frozenset(
        str(one.get("manager"))
        for one in spec_entries(managed)
        if not is_own(str(one.get("manager")))
        and (one.get("operation") == "Apply" or one.get("manager") in _CLIENT_SIDE_APPLY)
    )
