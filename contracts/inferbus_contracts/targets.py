"""Scale targets as the log shows them: replicas of the spec, and what became of them.

Pure reading of spec.changed and workload.observed; the same for every service that asks.
"""

import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from inferbus_contracts.events.spec import SpecChanged
from inferbus_contracts.events.workload import PodFact, WorkloadObserved

DEFAULT_REPLICAS = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class TargetSpec:
    """The part of an object's spec that scaling is about."""

    uid: str
    generation: int
    replicas: int
    roles: Mapping[str, int]
    """Replicas per group of each role; empty for objects without roles."""
    annotations: Mapping[str, str]

    @classmethod
    def of(cls, fact: SpecChanged) -> Self:
        """The target in a fact about an object."""
        spec = fact.object.get("spec") or {}
        roles = (spec.get("template") or {}).get("roles") or ()
        return cls(
            uid=fact.uid,
            generation=fact.generation,
            replicas=_replicas(spec),
            roles={str(role["name"]): _replicas(role) for role in roles},
            annotations=fact.object.get("metadata", {}).get("annotations") or {},
        )

    def replicas_of(self, role: str) -> int | None:
        """Replicas of the object, or of one role of it; None when it has no such role."""
        return self.roles.get(role) if role else self.replicas


@dataclass(frozen=True, kw_only=True, slots=True)
class ReplicaCounts:
    """Replicas by what they are good for; those being deleted don't count."""

    ready: int = 0
    starting: int = 0
    """Never ready so far: capacity to come."""
    unready: int = 0
    """Ready once, and not now."""


def replica_counts(observed: WorkloadObserved, role: str = "") -> ReplicaCounts:
    """Replicas of a workload, or of one role of it over all groups."""
    live = _live_replicas(observed, role)
    ready = sum(all(pod.ready for pod in pods) for pods in live)
    starting = sum(any(_never_ready(pod) for pod in pods) for pods in live)
    return ReplicaCounts(ready=ready, starting=starting, unready=len(live) - ready - starting)


def unplaced_since(observed: WorkloadObserved, role: str = "") -> list[int]:
    """For each replica that lacks a node: since when, in ms; of those not being deleted."""
    return [
        min(since)
        for pods in _live_replicas(observed, role)
        if (since := [pod.unplaced_since_ms for pod in pods if pod.unplaced_since_ms is not None])
    ]


def _live_replicas(observed: WorkloadObserved, role: str) -> list[list[PodFact]]:
    """The pods of each replica, of those not being deleted."""
    replicas: dict[str, list[PodFact]] = {}
    for pod in observed.pods:
        if not role or pod.role == role:
            name = f"{pod.group}/{pod.role_id}" if role else pod.group
            replicas.setdefault(name, []).append(pod)
    return [pods for pods in replicas.values() if not any(pod.deleting for pod in pods)]


def _never_ready(pod: PodFact) -> bool:
    return not pod.ready and pod.ready_since_ms is None


def startup_ms(observed: WorkloadObserved, role: str = "") -> int:
    """The median time from creation to readiness of the pods that are ready, 0 without any."""
    times = [
        pod.ready_since_ms - pod.starting_since_ms
        for pod in observed.pods
        if pod.ready_since_ms is not None
        and pod.starting_since_ms is not None
        and (not role or pod.role == role)
    ]
    return int(statistics.median_low(times)) if times else 0


def _replicas(holder: Mapping[str, Any]) -> int:
    value = holder.get("replicas")
    return DEFAULT_REPLICAS if value is None else int(value)
