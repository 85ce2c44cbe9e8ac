"""What a plan consists of: steps on child objects, each with its reason and its cause.

Invariant: an action names what it acts on completely (a manifest, or a name with the uid it must
still have), so that carrying it out twice, or late, does no harm.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, NamedTuple


class ChildKind(StrEnum):
    """Kinds of child objects."""

    POD = "Pod"
    SERVICE = "CoreService"
    REVISION = "ControllerRevision"
    POD_GROUP = "PodGroup"


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
    SERVICE_DIFFERS = "ServiceDiffers"
    SERVICE_UNUSED = "ServiceUnused"
    POD_GROUP_MISSING = "PodGroupMissing"
    POD_GROUP_DIFFERS = "PodGroupDiffers"
    POD_GROUP_UNUSED = "PodGroupUnused"
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    """Change some fields of an object if it is still the one that was seen, and as it was seen."""

    child: ChildKind
    name: str
    uid: str
    resource_version: str
    changes: Mapping[str, Any]
    """A JSON merge patch (RFC 7386) without preconditions: None removes a field."""
    motive: Motive

    @property
    def patch(self) -> dict[str, Any]:
        """The merge patch with its preconditions: a server answers 409 where they don't hold."""
        preconditions = {"uid": self.uid, "resourceVersion": self.resource_version}
        metadata = {**(self.changes.get("metadata") or {}), **preconditions}
        return {**self.changes, "metadata": metadata}


Action = Create | Update | Delete

GROUP_ANNOTATION = "scheduling.k8s.io/group-name"
"""On a pod and on its PodGroup: the PodGroup's name (modelserving spec 2.3)."""


def is_required(action: Action) -> bool:
    """Whether nothing else of the plan may follow when it fails: a new revision's snapshot."""
    return isinstance(action, Create) and action.child is ChildKind.REVISION


def stages(actions: Iterable[Action]) -> tuple[tuple[Action, ...], ...]:
    """A plan's actions in runs of which each may be carried out at the same time.

    Snapshots first, then what goes and what pods need beforehand, then pods, then the rest
    (modelserving spec 2.12). A snapshot that an earlier object left behind goes before the new one
    of its name. Within a run the order of the plan is kept; empty runs are left out.
    """
    actions = tuple(actions)
    snapshots = {one.name for one in actions if is_required(one)}
    runs: dict[int, list[Action]] = {}
    for action in actions:
        makes_way = action.child is ChildKind.REVISION and action.name in snapshots
        stage = _MAKES_WAY if makes_way and isinstance(action, Delete) else _stage(action)
        runs.setdefault(stage, []).append(action)
    return tuple(tuple(runs[stage]) for stage in sorted(runs))


def is_held(action: Action, failed: Collection[Action]) -> bool:
    """Whether a pod has to wait because its PodGroup couldn't be created."""
    if not isinstance(action, Create) or action.child is not ChildKind.POD:
        return False
    group = (action.manifest["metadata"].get("annotations") or {}).get(GROUP_ANNOTATION)
    return any(
        isinstance(one, Create) and one.child is ChildKind.POD_GROUP and one.name == group
        for one in failed
    )


_MAKES_WAY: Final = -1


def _stage(action: Action) -> int:
    if is_required(action):
        return 0
    if action.child is ChildKind.POD_GROUP or isinstance(action, Delete):
        return 1
    return 2 if action.child is ChildKind.POD else 3


class EventReason(StrEnum):
    """Transitions of role replicas that users watch for (modelserving spec 2.10), and failures."""

    CREATING = "RoleCreating"
    RUNNING = "RoleRunning"
    DELETING = "RoleDeleting"
    FAILED_CREATE = "FailedCreate"
    FAILED_UPDATE = "FailedUpdate"
    FAILED_DELETE = "FailedDelete"
    REFUSED = "Refused"
    """Nothing may be done here, because another controller does it."""

    @property
    def is_warning(self) -> bool:
        """Whether somebody should look into it."""
        return not self.value.startswith("Role")


class WorkloadEvent(NamedTuple):
    """One event on the workload object."""

    reason: EventReason
    message: str
