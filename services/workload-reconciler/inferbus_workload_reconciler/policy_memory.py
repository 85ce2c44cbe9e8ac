"""What pods can't tell, kept in one small document beside the object's status.

Pods don't tell which role replicas had once been complete (so that a pod which vanished is told
from one not created yet), when a failing pod is due, how often a replica was recreated, which
revision protected groups keep, and since when nothing came closer to what is wanted. The shell
stores the document before it acts, so that a crash between two actions neither forgets a failure
nor counts it twice.

Invariant: losing the document is harmless. Missing pods are then refilled rather than their replica
recreated, and back-off starts again; no pod is deleted because of it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import groupby
from typing import Any

from inferbus_workload_reconciler.workload import ReplicaId


class Standing(StrEnum):
    """How far a role replica has come."""

    COMPLETE = "complete"
    """All its pods existed once since it was last built."""
    RUNNING = "running"
    """Complete, and all ready when last looked at."""


@dataclass(frozen=True, slots=True)
class Failing:
    """A pod that failed."""

    due_ms: int
    """When it is to be deleted, unless it becomes ready before."""
    counted: bool = False
    """Its failure already lengthens the next back-off."""


@dataclass(frozen=True, slots=True)
class Setback:
    """How often something was recreated without running well in between."""

    failures: int
    last_ms: int


@dataclass(frozen=True, slots=True)
class Progress:
    """The best that a workload came to since its spec last changed."""

    generation: int
    best: int
    since_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """The document, read."""

    view: int = 0
    """`Observed.revision` of the view from which the memory was last changed."""
    current_revision: str = ""
    replicas: Mapping[ReplicaId, Standing] = field(default_factory=dict)
    failing: Mapping[str, Failing] = field(default_factory=dict)
    """By pod uid."""
    forgiven_restarts: Mapping[str, int] = field(default_factory=dict)
    """By pod uid: restarts after which the pod became ready again (defect MS_D13)."""
    setbacks: Mapping[str, Setback] = field(default_factory=dict)
    """By role replica (`group/role/ordinal`) or group (`group`)."""
    progress: Progress | None = None
    """Kept only while a workload with a deadline isn't as wanted."""

    def standing(self, replica: ReplicaId) -> Standing | None:
        """How far a replica has come; None when it never was complete."""
        return self.replicas.get(replica)


def parse_memory(document: Mapping[str, Any], status: Mapping[str, Any]) -> Memory:
    """Read the stored document; an empty one is a fresh memory.

    `status` is the object's own: an object that another controller served names there the revision
    that its protected groups keep.
    """
    return Memory(
        view=document.get("view", 0),
        current_revision=document.get("currentRevision") or status.get("currentRevision") or "",
        replicas={
            replica: standing
            for standing in Standing
            for replica in _unpack(document.get(standing.value) or {})
        },
        failing={
            uid: Failing(one["dueMs"], one.get("counted", False))
            for uid, one in (document.get("failing") or {}).items()
        },
        forgiven_restarts=dict(document.get("forgivenRestarts") or {}),
        setbacks={
            unit: Setback(one["failures"], one["lastMs"])
            for unit, one in (document.get("setbacks") or {}).items()
        },
        progress=_progress(document.get("progress") or {}),
    )


def _progress(document: Mapping[str, Any]) -> Progress | None:
    if not document:
        return None
    return Progress(document["generation"], document["best"], document["sinceMs"])


def memory_document(memory: Memory) -> dict[str, Any]:
    """The inverse of `parse_memory`; parts that are empty are left out."""
    by_standing: dict[str, list[ReplicaId]] = {}
    for replica, standing in memory.replicas.items():
        by_standing.setdefault(standing.value, []).append(replica)
    document = {
        "view": memory.view,
        "currentRevision": memory.current_revision,
        **{standing: _pack(replicas) for standing, replicas in sorted(by_standing.items())},
        "failing": {
            uid: {"dueMs": one.due_ms, "counted": one.counted}
            for uid, one in memory.failing.items()
        },
        "forgivenRestarts": dict(memory.forgiven_restarts),
        "setbacks": {
            unit: {"failures": one.failures, "lastMs": one.last_ms}
            for unit, one in memory.setbacks.items()
        },
        "progress": _progress_document(memory.progress),
    }
    return {key: value for key, value in document.items() if value}


def _progress_document(progress: Progress | None) -> dict[str, int]:
    if progress is None:
        return {}
    return {
        "generation": progress.generation,
        "best": progress.best,
        "sinceMs": progress.since_ms,
    }


def _pack(replicas: Iterable[ReplicaId]) -> dict[str, dict[str, str]]:
    """Groups of one shape share an entry: a uniform fleet takes a line, however large it is."""
    roles_of: dict[int, dict[str, list[int]]] = {}
    for replica in sorted(replicas):
        roles_of.setdefault(replica.group, {}).setdefault(replica.role, []).append(replica.ordinal)
    groups_of: dict[tuple[tuple[str, str], ...], list[int]] = {}
    for group, roles in roles_of.items():
        shape = tuple((role, _ranges(ordinals)) for role, ordinals in roles.items())
        groups_of.setdefault(shape, []).append(group)
    return {_ranges(groups): dict(shape) for shape, groups in groups_of.items()}


def _unpack(packed: Mapping[str, Mapping[str, str]]) -> Iterable[ReplicaId]:
    for groups, roles in packed.items():
        for group in _numbers(groups):
            for role, ordinals in roles.items():
                for ordinal in _numbers(ordinals):
                    yield ReplicaId(group, role, ordinal)


def _ranges(numbers: list[int]) -> str:
    """`0-3,5` for ascending 0, 1, 2, 3, 5."""
    runs = []
    for _, run in groupby(enumerate(numbers), key=lambda pair: pair[1] - pair[0]):
        members = [number for _, number in run]
        first, last = members[0], members[-1]
        runs.append(str(first) if first == last else f"{first}-{last}")
    return ",".join(runs)


def _numbers(ranges: str) -> Iterable[int]:
    for run in ranges.split(","):
        first, _, last = run.partition("-")
        yield from range(int(first), int(last or first) + 1)
