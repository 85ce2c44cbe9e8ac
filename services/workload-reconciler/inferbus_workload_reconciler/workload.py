"""What a workload should be, in the planner's own words.

Two kinds of object are planned by the same rules: a ModelServing, whose groups hold several roles,
and a LeaderWorkerSet, whose groups are one leader with its workers. Both parse into
`WorkloadSpec`; what differs between them (names, labels, environment, services) is a `Convention`.

Invariant: everything here is immutable, and a `RoleTemplate` holds exactly what its hash covers:
two templates with the same hash render the same pods.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple, Protocol

from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.resources.annotations import StartupStep

IntOrPercent = int | str
"""A count, or a share such as `25%`."""


class RecoveryPolicy(StrEnum):
    """What is recreated when a pod fails or is lost (modelserving spec 3.11)."""

    GROUP = "ServingGroupRecreate"
    ROLE = "RoleRecreate"
    NONE = "None"


class RolloutType(StrEnum):
    """What is replaced at a time when templates change (modelserving spec 3.7, 3.8)."""

    GROUP = "ServingGroupRollingUpdate"
    ROLE = "RoleRollingUpdate"


class ReplicaId(NamedTuple):
    """Names one role replica: a role's copy inside one group."""

    group: int
    role: str
    ordinal: int

    def __str__(self) -> str:
        return f"{self.group}/{self.role}/{self.ordinal}"


class Slot(NamedTuple):
    """The place of one pod; worker index 0 is the entry pod, the others are workers."""

    group: int
    role: str
    ordinal: int
    worker_index: int

    @property
    def replica(self) -> ReplicaId:
        """The role replica that the pod belongs to."""
        return ReplicaId(self.group, self.role, self.ordinal)


@dataclass(frozen=True, slots=True, kw_only=True)
class PodTemplate:
    """The user's part of a pod."""

    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    spec: Mapping[str, Any]
    """A Kubernetes PodSpec; never changed in place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleTemplate:
    """What a role replica is made of; replicas are deliberately no part of it."""

    name: str
    worker_replicas: int
    entry: PodTemplate
    worker: PodTemplate | None
    content: Mapping[str, Any]
    """What the hash covers, as it stands in a revision snapshot."""
    hash: str
    meaning: str
    """Equal for templates that say the same in other words."""

    @property
    def size(self) -> int:
        """Pods of one role replica."""
        return 1 + self.worker_replicas

    def pod_template(self, worker_index: int) -> PodTemplate:
        """The template of one of its pods; raises `ValueError` where there is none."""
        template = self.entry if worker_index == 0 else self.worker
        if template is None:
            raise ValueError(f"role {self.name} has no template for worker {worker_index}")
        return template


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleSpec:
    """A role as the object wants it now."""

    template: RoleTemplate
    replicas: int
    max_unavailable: IntOrPercent | None
    """Only for RoleRollingUpdate; None: all at once."""
    partition: IntOrPercent | None
    """Only for RoleRollingUpdate; replicas below it keep the current revision."""
    network_topology: Mapping[str, Any] | None = None
    """How close together the pods of one replica must be; None: as the workload says."""

    @property
    def name(self) -> str:
        """The role's name."""
        return self.template.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Rollout:
    """How new templates reach the groups."""

    type: RolloutType = RolloutType.GROUP
    max_unavailable: IntOrPercent = 1
    max_surge: IntOrPercent = 0
    partition: IntOrPercent | None = None
    """Groups whose ordinal is below it keep the current revision."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plugin:
    """One entry of `spec.plugins`, checked."""

    name: str
    config: Mapping[str, Any]
    roles: tuple[str, ...]
    """Empty: all roles."""
    target: str
    """`All`, `Entry`, `Worker`; empty means `All`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopologySpread:
    """How groups spread over the nodes' topology."""

    max_skew: int
    topology_key: str
    when_unsatisfiable: str
    label_selector: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Gang:
    """What a gang scheduler is told of a group (modelserving spec 4)."""

    min_role_replicas: Mapping[str, int] = field(default_factory=dict)
    """How many replicas of a role must fit at once; a role that is missing needs all."""
    group_topology: Mapping[str, Any] | None = None
    role_topology: Mapping[str, Any] | None = None
    queue: str = ""
    """Empty: the scheduler's default queue."""
    stated: bool = False
    """Whether the object says anything of it, so that ignoring it must be told."""


class ServiceShape(NamedTuple):
    """What distinguishes one headless service from another."""

    labels: Mapping[str, str]
    selector: Mapping[str, str]


class InjectedEnv(NamedTuple):
    """Variables that every container of a pod gets."""

    variables: tuple[Mapping[str, str], ...]
    first: bool
    """Before the user's variables, so that those can refer to them; otherwise after."""


class Convention(Protocol):
    """Names, labels and environment that users of one API depend on."""

    name_label: str
    revision_label: str
    template_hash_label: str | None

    def group_name(self, workload: str, group: int) -> str:
        """The name of a group."""

    def role_id(self, replica: ReplicaId) -> str:
        """The name of a role replica inside its group; empty where groups have no roles."""

    def pod_name(self, workload: str, slot: Slot) -> str:
        """The name of the pod in a slot."""

    def slot_of(self, workload: str, name: str, labels: Mapping[str, str]) -> Slot | None:
        """The inverse of `pod_name`; None when the name isn't of this workload."""

    def pod_labels(self, namespace: str, workload: str, slot: Slot) -> dict[str, str]:
        """Reserved labels of a pod, without those of its revision."""

    def pod_annotations(self, workload: str, slot: Slot, size: int) -> dict[str, str]:
        """Reserved annotations of a pod; `size` is the pods of its role replica."""

    def pod_fields(self, workload: str, slot: Slot) -> dict[str, str]:
        """Reserved fields of the pod's spec, such as its host name."""

    def environment(self, namespace: str, workload: str, slot: Slot, size: int) -> InjectedEnv:
        """Variables that tell a container its place."""

    def services(
        self, workload: str, replicas: Iterable[tuple[ReplicaId, RoleTemplate]]
    ) -> dict[str, ServiceShape]:
        """The headless services for these role replicas, by name."""

    def label_selector(self, workload: str, role: str, ordinal: int) -> str:
        """A selector that matches one representative pod per group."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadSpec:
    """One workload as it should be."""

    key: ObjectKey
    api_version: str
    uid: str
    generation: int
    """Generation of the spec this was parsed from."""
    replicas: int
    roles: tuple[RoleSpec, ...]
    convention: Convention
    recovery: RecoveryPolicy = RecoveryPolicy.ROLE
    restart_grace_ms: int = 0
    rollout: Rollout = Rollout()
    scheduler_name: str | None = None
    plugins: tuple[Plugin, ...] = ()
    topology_spread: tuple[TopologySpread, ...] = ()
    gang: Gang = Gang()
    startup: frozenset[StartupStep] = frozenset()
    """What waits for what when a group is built; empty: nothing."""
    paused: bool = False
    """Whether no group or role may move on to another revision."""
    progress_deadline_ms: int | None = None
    """How long nothing may come closer to what is wanted; None: for ever."""
    leader_worker_set: str = ""
    """Name of the LeaderWorkerSet that owns the object, if one does."""

    @property
    def name(self) -> str:
        """The object's name."""
        return self.key.name

    @property
    def namespace(self) -> str:
        """The object's namespace."""
        return self.key.namespace

    @property
    def owner_reference(self) -> dict[str, Any]:
        """The reference that every child carries (modelserving spec 2.9)."""
        return {
            "apiVersion": self.api_version,
            "kind": self.key.kind,
            "name": self.name,
            "uid": self.uid,
            "controller": True,
            "blockOwnerDeletion": True,
        }

    def role(self, name: str) -> RoleSpec | None:
        """The role of that name."""
        return next((role for role in self.roles if role.name == name), None)
