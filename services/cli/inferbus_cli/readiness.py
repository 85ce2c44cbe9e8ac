"""Whether what was applied serves: a fold of facts, and what it still waits for. Pure.

Workloads must run with every replica of their newest generation; routes and model servers must be
accepted, resolved and have an endpoint; a short kind must have its children, and they be ready.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from inferbus_contracts.base import EventData
from inferbus_contracts.events.route import ConditionStatus, RoutesResolved
from inferbus_contracts.events.spec import SpecChanged
from inferbus_contracts.events.workload import WorkloadObserved
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.resources.kinds import (
    INFERENCE_SERVICE,
    LEADER_WORKER_SET,
    MODEL_BOOSTER,
    MODEL_ROUTE,
    MODEL_SERVER,
    MODEL_SERVING,
    PLAYGROUND,
)

WORKLOADS = frozenset({MODEL_SERVING, LEADER_WORKER_SET})
ROUTED = frozenset({MODEL_ROUTE, MODEL_SERVER})
EXPANDED = frozenset({MODEL_BOOSTER, PLAYGROUND, INFERENCE_SERVICE})
WAITED_FOR = WORKLOADS | ROUTED | EXPANDED
"""Other kinds are ready once they are stored."""

_NEEDED = ("Accepted", "ResolvedRefs", "Ready")


@dataclass(frozen=True, slots=True)
class Waiting:
    """One object that doesn't serve yet."""

    key: ObjectKey
    why: str


class Readiness:
    """What was applied, with the facts about it."""

    def __init__(self, applied: Mapping[ObjectKey, tuple[str, int]]) -> None:
        """`applied`: uid and generation of each object."""
        self._applied = {key: seen for key, seen in applied.items() if key.kind in WAITED_FOR}
        self._objects: dict[ObjectKey, SpecChanged] = {}
        self._workloads: dict[ObjectKey, WorkloadObserved] = {}
        self._resolved: dict[ObjectKey, RoutesResolved] = {}

    def take(self, key: ObjectKey, data: EventData) -> None:
        """Draw one fact in."""
        if isinstance(data, SpecChanged):
            if data.deleted:
                self._objects.pop(key, None)
            else:
                self._objects[key] = data
        elif isinstance(data, WorkloadObserved):
            self._workloads[key] = data
        elif isinstance(data, RoutesResolved):
            self._resolved[key] = data

    def waiting(self) -> list[Waiting]:
        """What doesn't serve yet, in key order; empty once everything does."""
        reasons: dict[ObjectKey, str] = {}
        for key, (uid, generation) in self._applied.items():
            for part, why in self._reasons(key, uid, generation):
                reasons.setdefault(part, why)
        return [Waiting(key, reasons[key]) for key in sorted(reasons)]

    def _reasons(
        self, key: ObjectKey, uid: str, generation: int
    ) -> Iterator[tuple[ObjectKey, str]]:
        children = self._children(uid)
        why = ""
        if key.kind in WORKLOADS:
            why = self._workload(key, uid, generation)
        elif key.kind in ROUTED:
            why = self._route(key, uid, generation)
        elif not any(child.kind in WORKLOADS | EXPANDED for child in children):
            why = "its workload isn't there yet"
        if why:
            yield key, why
        for child, fact in children.items():
            yield from self._reasons(child, fact.uid, fact.generation)

    def _children(self, uid: str) -> dict[ObjectKey, SpecChanged]:
        return {
            key: fact
            for key, fact in self._objects.items()
            if key.kind in WAITED_FOR and uid in _owners(fact)
        }

    def _workload(self, key: ObjectKey, uid: str, generation: int) -> str:
        fact = self._workloads.get(key)
        if fact is None or fact.uid != uid or fact.generation < generation:
            return "not looked at yet"
        if fact.ready >= fact.desired and fact.updated >= fact.desired == fact.replicas:
            return ""
        problem = f": {fact.problem}" if fact.problem else ""
        return f"{fact.ready} of {fact.desired} ready, {fact.updated} updated{problem}"

    def _route(self, key: ObjectKey, uid: str, generation: int) -> str:
        fact = self._resolved.get(key)
        if fact is None or fact.uid != uid or fact.generation < generation:
            return "not looked at yet"
        for one in fact.conditions:
            if one.type in _NEEDED and one.status is not ConditionStatus.TRUE:
                return f"{one.reason}: {one.message}" if one.message else one.reason
        return ""


def _owners(fact: SpecChanged) -> set[str]:
    references = fact.object.get("metadata", {}).get("ownerReferences") or ()
    return {str(reference.get("uid")) for reference in references}
