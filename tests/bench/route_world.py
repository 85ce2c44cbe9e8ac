"""A large table as facts, and the changes of it that are measured. Pure."""

from collections.abc import Iterator
from typing import Any

from inferbus_contracts.admission.admit import admit
from inferbus_contracts.base import EventData
from inferbus_contracts.canonical import digest
from inferbus_contracts.events.spec import SpecChanged
from inferbus_contracts.events.workload import PodFact, WorkloadObserved
from inferbus_contracts.keys import ObjectKey

ROUTES = 2_000
PODS_PER_SERVER = 5
PARTS = 2 * ROUTES
"""A route and a model server each."""

Fact = tuple[ObjectKey, EventData]

_API = "networking.serving.volcano.sh/v1alpha1"


def all_facts() -> Iterator[Fact]:
    """Everything that a table of `ROUTES` routes and five times as many endpoints is made from."""
    for number in range(ROUTES):
        yield route_fact(number, weight=100)
        yield _server_fact(number)
        yield workload_fact(number, ready=True)


def change(number: int) -> Fact:
    """The n-th change: an endpoint goes, another comes back, a weight moves; each in turn."""
    place, turn = divmod(number, 3)
    if turn == 2:
        return route_fact(place % ROUTES, weight=1 + place % 99)
    return workload_fact(place % ROUTES, ready=turn == 1)


def route_fact(number: int, weight: int) -> Fact:
    """A route to one server, and to a canary beside it."""
    targets = [
        {"modelServerName": f"s{number}", "weight": weight},
        {"modelServerName": f"s{(number + 1) % ROUTES}", "weight": 1},
    ]
    spec = {"modelName": f"m{number}", "rules": [{"targetModels": targets}]}
    return _spec_fact("ModelRoute", f"r{number}", spec)


def workload_fact(number: int, *, ready: bool) -> Fact:
    """A workload of five pods; the first of them is ready or not."""
    pods = [_pod(number, index, ready=ready or index > 0) for index in range(PODS_PER_SERVER)]
    key = ObjectKey("ModelServing", "ns", f"w{number}")
    return key, WorkloadObserved(uid=f"uid-w{number}", generation=1, pods=pods)


def _server_fact(number: int) -> Fact:
    spec = {
        "inferenceEngine": "vLLM",
        "workloadSelector": {"matchLabels": {"app": f"s{number}"}},
        "workloadPort": {"port": 8000},
    }
    return _spec_fact("ModelServer", f"s{number}", spec)


def _pod(number: int, index: int, *, ready: bool) -> PodFact:
    return PodFact(
        name=f"w{number}-{index}",
        uid=f"uid-w{number}-{index}",
        phase="Running",
        ready=ready,
        address=f"10.{number // 250}.{number % 250}.{index + 1}",
        entry=True,
        labels={"app": f"s{number}", "role": "main", "revision": "r1"},
    )


def _spec_fact(kind: str, name: str, spec: dict[str, Any]) -> Fact:
    metadata = {
        "name": name,
        "namespace": "ns",
        "uid": f"uid-{kind}-{name}",
        "creationTimestamp": "2026-01-01T00:00:00Z",
    }
    document = {"apiVersion": _API, "kind": kind, "metadata": metadata, "spec": spec}
    admitted = admit(document)
    return admitted.key, SpecChanged(
        uid=metadata["uid"], generation=1, digest=digest(admitted.object), object=admitted.object
    )
