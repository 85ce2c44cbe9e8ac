"""What runs, as the substrate reports it.

Invariant: an `ObservedPod` says nothing that isn't in the pod object, and times are virtual
milliseconds: the shell has mapped the server's stamps already where its clock runs faster.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from inferbus_workload_reconciler.workload import WorkloadSpec

DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"


@dataclass(frozen=True, slots=True)
class Owner:
    """The controller of a child object."""

    kind: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedPod:
    """One pod."""

    name: str
    uid: str
    owner: Owner | None
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    phase: str
    ready: bool
    """Running, and its Ready condition is True (readiness gates count)."""
    deletion_due_ms: int | None
    """When it is to be gone at the latest; None unless it is being deleted."""
    node: str
    address: str
    restarts: int
    """Restarts of its containers; those of sidecars (restartable init containers) don't count."""
    created_ms: int | None
    ready_since_ms: int | None
    unplaced_since_ms: int | None = None
    """Since when no node takes it up; None unless that is so."""
    deletion_cost: int
    message: str
    spec: Mapping[str, Any]

    @property
    def deleting(self) -> bool:
        """Whether its deletion was requested."""
        return self.deletion_due_ms is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedService:
    """One headless service."""

    name: str
    uid: str
    owner: Owner | None
    deleting: bool
    resource_version: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    selector: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedPodGroup:
    """One PodGroup of Volcano."""

    name: str
    uid: str
    resource_version: str
    owner: Owner | None
    deleting: bool
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    spec: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """What a cluster offers to workloads (`policy_cluster` reads it); by default nothing."""

    volcano: bool | None = None
    """Whether PodGroups of Volcano are served; None on a substrate without schedulers."""
    pod_group_schema: Mapping[str, Any] | None = None
    """The structural schema of a PodGroup's `spec`; None where it isn't known."""


NO_CLUSTER = Cluster()


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """Everything that the substrate knows about one workload at one moment."""

    revision: int = 0
    """The newest change that is shown of what the memory is about; 0 is not known."""
    complete_to: int | None = None
    """Every change up to this revision is shown; None: `revision` says so itself."""
    pods: tuple[ObservedPod, ...] = ()
    """All pods with the workload's name label, whoever owns them."""
    services: tuple[ObservedService, ...] = ()
    """All services that the workload owns or that have its name label: those of ModelServing v0.1
    lack it."""
    lost_nodes: frozenset[str] = frozenset()
    """Nodes that are gone or marked out of service: what ran there has stopped."""
    pod_groups: tuple[ObservedPodGroup, ...] = ()
    """All PodGroups with the workload's name label, whoever owns them."""
    cluster: Cluster = NO_CLUSTER


def observe_pod(pod: Mapping[str, Any]) -> ObservedPod:
    """Read a Kubernetes Pod object."""
    metadata = pod["metadata"]
    status = pod.get("status") or {}
    spec = pod.get("spec") or {}
    condition = _ready_condition(status)
    ready = status.get("phase") == "Running" and condition.get("status") == "True"
    deletion = metadata.get("deletionTimestamp")
    annotations = metadata.get("annotations") or {}
    return ObservedPod(
        name=metadata["name"],
        uid=metadata["uid"],
        owner=controller_of(metadata),
        labels=metadata.get("labels") or {},
        annotations=annotations,
        phase=status.get("phase") or "Pending",
        ready=ready,
        deletion_due_ms=None if deletion is None else timestamp_ms(deletion),
        node=spec.get("nodeName") or "",
        address=status.get("podIP") or "",
        restarts=_restarts(spec, status),
        created_ms=timestamp_ms(metadata.get("creationTimestamp")),
        ready_since_ms=timestamp_ms(condition.get("lastTransitionTime")) if ready else None,
        unplaced_since_ms=_unplaced_since_ms(metadata, spec, status),
        deletion_cost=_deletion_cost(annotations),
        message=status.get("message") or condition.get("message") or "",
        spec=spec,
    )


def observe_service(service: Mapping[str, Any]) -> ObservedService:
    """Read a core Service object."""
    metadata = service["metadata"]
    return ObservedService(
        name=metadata["name"],
        uid=metadata["uid"],
        owner=controller_of(metadata),
        deleting=metadata.get("deletionTimestamp") is not None,
        resource_version=str(metadata.get("resourceVersion") or ""),
        labels=metadata.get("labels") or {},
        selector=(service.get("spec") or {}).get("selector") or {},
    )


def observe_pod_group(group: Mapping[str, Any]) -> ObservedPodGroup:
    """Read a PodGroup of scheduling.volcano.sh/v1beta1."""
    metadata = group["metadata"]
    return ObservedPodGroup(
        name=metadata["name"],
        uid=metadata["uid"],
        resource_version=metadata.get("resourceVersion") or "",
        owner=controller_of(metadata),
        deleting=metadata.get("deletionTimestamp") is not None,
        labels=metadata.get("labels") or {},
        annotations=metadata.get("annotations") or {},
        spec=group.get("spec") or {},
    )


def controller_of(metadata: Mapping[str, Any]) -> Owner | None:
    """The owner reference that is marked as controller."""
    for owner in metadata.get("ownerReferences") or ():
        if owner.get("controller"):
            return Owner(owner["kind"], owner["name"], owner["uid"])
    return None


def is_owned(owner: Owner | None, workload: WorkloadSpec) -> bool:
    """Whether a child is this very object's."""
    return owner is not None and owner.uid == workload.uid


def is_orphan(owner: Owner | None, workload: WorkloadSpec) -> bool:
    """Whether a child is left over from an earlier object of the same kind and name."""
    if owner is None or owner.uid == workload.uid:
        return False
    return (owner.kind, owner.name) == (workload.key.kind, workload.name)


def timestamp_ms(text: str | None) -> int | None:
    """Milliseconds since the epoch of an RFC 3339 time; None for None."""
    return None if text is None else round(datetime.fromisoformat(text).timestamp() * 1000)


def _ready_condition(status: Mapping[str, Any]) -> Mapping[str, Any]:
    return _condition(status, "Ready")


def _condition(status: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
    conditions: Iterable[Mapping[str, Any]] = status.get("conditions") or ()
    return next((one for one in conditions if one.get("type") == kind), {})


_ON_THE_WAY = frozenset({"", "ContainerCreating", "PodInitializing"})
"""Reasons of a container that waits for its turn."""


def _unplaced_since_ms(
    metadata: Mapping[str, Any], spec: Mapping[str, Any], status: Mapping[str, Any]
) -> int | None:
    """Since when a pod waits in vain for a node, or for one that can start it.

    Images and models that are on their way are no shortage; neither is a container that ran.
    """
    if (status.get("phase") or "Pending") != "Pending":
        return None
    created_ms = timestamp_ms(metadata.get("creationTimestamp"))
    scheduled = _condition(status, "PodScheduled")
    if scheduled.get("status") == "False":
        return timestamp_ms(scheduled.get("lastTransitionTime")) or created_ms
    if not spec.get("nodeName") or status.get("reason"):
        return created_ms
    return created_ms if any(map(_cannot_start, _container_statuses(status))) else None


def _container_statuses(status: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]


def _cannot_start(container: Mapping[str, Any]) -> bool:
    waiting = (container.get("state") or {}).get("waiting") or {}
    ran = container.get("restartCount") or container.get("lastState")
    return not ran and (waiting.get("reason") or "") not in _ON_THE_WAY


def _restarts(spec: Mapping[str, Any], status: Mapping[str, Any]) -> int:
    sidecars = {
        container["name"]
        for container in spec.get("initContainers") or ()
        if container.get("restartPolicy") == "Always"
    }
    containers = [
        *(status.get("containerStatuses") or ()),
        *(
            one
            for one in status.get("initContainerStatuses") or ()
            if one.get("name") not in sidecars
        ),
    ]
    return sum(one.get("restartCount") or 0 for one in containers)


def _deletion_cost(annotations: Mapping[str, str]) -> int:
    """Missing or unparsable counts as 0, as Kubernetes does."""
    try:
        return int(annotations.get(DELETION_COST, "0"))
    except ValueError:
        return 0
