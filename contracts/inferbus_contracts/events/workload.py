"""What runs: facts about workloads, written by the workload-reconciler alone."""

from enum import StrEnum
from typing import ClassVar

from pydantic import Field

from inferbus_contracts.base import EventData


class PodFact(EventData):
    """One pod as the reconciler last saw it."""

    name: str
    uid: str
    phase: str
    """Pending, Running, Succeeded, Failed or Unknown."""
    ready: bool = False
    deleting: bool = False
    failed: bool = False
    """Phase Failed, or broken and about to be replaced."""
    node: str = ""
    address: str = ""
    """IP address; empty until it is known."""
    ports: list[int] = Field(default_factory=list)
    """Declared container ports, ascending."""
    role: str = ""
    role_id: str = ""
    group: str = ""
    entry: bool = False
    revision: str = ""
    labels: dict[str, str] = Field(default_factory=dict)
    annotations: dict[str, str] = Field(default_factory=dict)
    """Only those that routing or metrics read (`inferbus.dev/…`)."""
    restarts: int = 0
    starting_since_ms: int | None = None
    """When it was created; None where unknown."""
    ready_since_ms: int | None = None
    """When it last became ready; `ready_since_ms - starting_since_ms` is its start-up time."""
    unplaced_since_ms: int | None = None
    """Since when it waits for a node that takes it: it isn't scheduled, or its node can't start a
    container that never ran; None where that isn't so."""
    models: list[str] = Field(default_factory=list)
    """Names its engine reports under /v1/models, adapters included; empty when not known."""
    message: str = ""
    """Why it isn't running or ready, where known."""


class GroupFact(EventData):
    """One replica of a workload: a ServingGroup, or a leader-worker group."""

    name: str
    ordinal: int
    revision: str = ""
    ready: bool = False
    deleting: bool = False


class RoleFact(EventData):
    """One role over all groups; `desired` counts role replicas per group."""

    name: str
    desired: int
    ready: int
    """Ready role replicas over all groups."""


class WorkloadObserved(EventData):
    """A whole workload; emitted when its digest changes."""

    event_type: ClassVar[str] = "workload.observed"

    uid: str
    generation: int
    """Generation of the spec that was acted on."""
    deleted: bool = False
    """True once the last pod of a deleted workload is gone."""
    desired: int = 0
    replicas: int = 0
    ready: int = 0
    updated: int = 0
    current_revision: str = ""
    update_revision: str = ""
    label_selector: str = ""
    groups: list[GroupFact] = Field(default_factory=list)
    roles: list[RoleFact] = Field(default_factory=list)
    pods: list[PodFact] = Field(default_factory=list)
    frozen: bool = False
    problem: str = ""
    """What keeps the workload from its desired state, where known."""


class Action(StrEnum):
    """What the reconciler did to an object."""

    CREATE = "create"
    DELETE = "delete"
    PATCH = "patch"
    SCALE = "scale"
    LOAD_ADAPTER = "load-adapter"
    UNLOAD_ADAPTER = "unload-adapter"


class Outcome(StrEnum):
    """How it ended."""

    DONE = "done"
    ALREADY = "already"
    CONFLICT = "conflict"
    FAILED = "failed"


class WorkloadActed(EventData):
    """One action with its reason and its outcome."""

    event_type: ClassVar[str] = "workload.acted"

    action: Action
    object: str
    """Key of what was acted on."""
    reason: str
    """A word from a fixed vocabulary, e.g. `ScaleUp`, `PodFailed`, `RollingUpdate`."""
    cause: str
    """One sentence with the numbers behind it."""
    outcome: Outcome
    error: str = ""
    generation: int = 0
    """Generation of the spec that the action follows from."""
