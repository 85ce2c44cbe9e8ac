"""Which pods of a workload answer requests, and whether they can be sent any.

Invariant: of a replica with several pods only the one that serves is here; the others do its work
and listen to nobody (modelbooster spec 2.11: multi-node boosters list pods that serve no HTTP).
"""

from collections.abc import Mapping
from dataclasses import dataclass

from inferbus_contracts.events.workload import PodFact, WorkloadObserved
from inferbus_contracts.keys import ObjectKey

SERVING_NAME = "modelserving.volcano.sh/name"
SERVING_GROUP_NAME = "modelserving.volcano.sh/group-name"
SERVING_ROLE = "modelserving.volcano.sh/role"
SERVING_ROLE_ID = "modelserving.volcano.sh/role-id"
SERVING_ENTRY = "modelserving.volcano.sh/entry"
GROUPS_NAME = "leaderworkerset.sigs.k8s.io/name"
GROUPS_GROUP_INDEX = "leaderworkerset.sigs.k8s.io/group-index"
GROUPS_WORKER_INDEX = "leaderworkerset.sigs.k8s.io/worker-index"

_ENDED = frozenset({"Succeeded", "Failed"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingPod:
    """One pod as routing sees it; two that are equal are routed alike."""

    workload: ObjectKey
    name: str
    address: str
    """Empty while the pod can't be reached: before it has an address, and after it ended."""
    labels: Mapping[str, str]
    ready: bool
    draining: bool
    state: str
    """What keeps it from being ready, for people; empty when nothing does."""

    @property
    def available(self) -> bool:
        """Whether new requests may be sent to it."""
        return self.ready and not self.draining and bool(self.address)


def serving_pods(workload: ObjectKey, observed: WorkloadObserved) -> dict[str, ServingPod]:
    """The pods of a workload that answer requests, by name, in the order of the fact."""
    has_entries = any(_is_entry(pod) for pod in observed.pods)
    return {
        pod.name: _serving_pod(workload, pod)
        for pod in observed.pods
        if _serves(pod, has_entries=has_entries)
    }


def _is_entry(pod: PodFact) -> bool:
    return pod.entry or pod.labels.get(SERVING_ENTRY) == "true"


def _serves(pod: PodFact, *, has_entries: bool) -> bool:
    if _is_entry(pod):
        return True
    index = pod.labels.get(GROUPS_WORKER_INDEX)
    if index is not None:
        return index == "0"
    # A ModelServing's worker stays one while its entry pod is being replaced.
    return not has_entries and SERVING_NAME not in pod.labels


def _serving_pod(workload: ObjectKey, pod: PodFact) -> ServingPod:
    running = pod.phase not in _ENDED
    ready = pod.ready and running and not pod.failed
    return ServingPod(
        workload=workload,
        name=pod.name,
        address=pod.address if running else "",
        labels=pod.labels,
        ready=ready,
        draining=pod.deleting,
        state="" if ready and not pod.deleting else _state(pod),
    )


def _state(pod: PodFact) -> str:
    """In the order of what a reader wants to know first."""
    if pod.deleting:
        return "is being deleted"
    word = "Failed" if pod.failed else pod.phase
    if pod.message:
        return f"{word}: {pod.message}"
    return "Running, not ready" if word == "Running" else word
