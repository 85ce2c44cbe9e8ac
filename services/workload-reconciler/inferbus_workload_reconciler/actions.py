"""What a plan consists of: steps on child objects, each with its reason and its cause.

Invariant: an action names what it acts on completely (a manifest, or a name with the uid it must
still have), so that carrying it out twice, or late, does no harm.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple


class ChildKind(StrEnum):
    """Kinds of child objects."""

    POD = "Pod"
    SERVICE = "CoreService"
    REVISION = "ControllerRevision"


class Reason(StrEnum):
    """Why something is done: the vocabulary of `workload.acted`."""

    SCALE_UP = "ScaleUp"
    SCALE_DOWN = "ScaleDown"
    ROLE_SCALE_UP = "RoleScaleUp"
    ROLE_SCALE_DOWN = "RoleScaleDown"
    ROLE_REMOVED = "RoleRemoved"
    ROLLING_UPDATE = "RollingUpdate"
    ROLE_ROLLING_UPDATE = "RoleRollingUpdate"
    SURGE = "Surge"
    SURGE_DONE = "SurgeDone"
    POD_FAILED = "PodFailed"
    POD_LOST = "PodLost"
    POD_MISSING = "PodMissing"
    POD_SURPLUS = "PodSurplus"
    NODE_LOST = "NodeLost"
    ORPHANED = "Orphaned"
    SERVICE_MISSING = "ServiceMissing"
    SERVICE_UNUSED = "ServiceUnused"
    NEW_REVISION = "NewRevision"
    HISTORY_LIMIT = "HistoryLimit"


class Motive(NamedTuple):
    """A reason and, in one sentence, the numbers behind it."""

    reason: Reason
    cause: str


def orphaned(owner_uid: str) -> Motive:
    """Why a child of an earlier object goes."""
    return Motive(Reason.ORPHANED, f"its owner {owner_uid} is an earlier object of this name")


@dataclass(frozen=True, slots=True, kw_only=True)
class Create:
    """Create an object; one of that name that exists already is left alone."""

    child: ChildKind
    manifest: Mapping[str, Any]
    motive: Motive

    @property
    def name(self) -> str:
        """The object's name."""
        name: str = self.manifest["metadata"]["name"]
        return name


@dataclass(frozen=True, slots=True, kw_only=True)
class Delete:
    """Delete the object of that name if it still has that uid."""

    child: ChildKind
    name: str
    uid: str
    motive: Motive
    grace_period_seconds: int | None = None
    """None: the pod's own; 0: at once, because its node is gone."""


Action = Create | Delete


class EventReason(StrEnum):
    """Transitions of role replicas that users watch for (modelserving spec 2.10)."""

    CREATING = "RoleCreating"
    RUNNING = "RoleRunning"
    DELETING = "RoleDeleting"


class WorkloadEvent(NamedTuple):
    """One event on the workload object."""

    reason: EventReason
    message: str
