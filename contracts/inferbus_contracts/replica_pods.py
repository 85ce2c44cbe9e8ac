"""What one replica of a scale target is made of: its pods, and the resources they ask for.

Read from a stored ModelServing or LeaderWorkerSet. Invariant: an object of another kind, or a part
that isn't there, has no pods; nothing is guessed.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from inferbus_contracts.resources.scalars import parse_quantity

Amounts = dict[str, Fraction]
"""By resource name, e.g. `nvidia.com/gpu`."""


@dataclass(frozen=True, slots=True)
class ReplicaPods:
    """Pods of one template."""

    count: int
    spec: Mapping[str, Any]
    """A Kubernetes PodSpec."""


def replica_pods(document: Mapping[str, Any], role: str = "") -> Iterator[ReplicaPods]:
    """The pods of one replica of an object: of a group, or of one replica of a role of it."""
    spec = document.get("spec") or {}
    if document.get("kind") == "LeaderWorkerSet":
        template = spec.get("leaderWorkerTemplate") or {}
        worker = template.get("workerTemplate")
        yield from _pods(template.get("leaderTemplate") or worker, 1)
        yield from _pods(worker, max(0, int(template.get("size") or 1) - 1))
    elif document.get("kind") == "ModelServing":
        for each in (spec.get("template") or {}).get("roles") or ():
            if role in ("", each.get("name")):
                replicas = 1 if role else _count(each.get("replicas"), 1)
                workers = _count(each.get("workerReplicas"), 0)
                yield from _pods(each.get("entryTemplate"), replicas)
                yield from _pods(each.get("workerTemplate"), replicas * workers)


def replica_amounts(document: Mapping[str, Any], role: str = "") -> Amounts:
    """What one replica asks for of each resource."""
    amounts: Amounts = {}
    for pods in replica_pods(document, role):
        for name, amount in pod_amounts(pods.spec).items():
            amounts[name] = amounts.get(name, Fraction()) + pods.count * amount
    return amounts


def pod_amounts(spec: Mapping[str, Any]) -> Amounts:
    """What a pod asks for: its containers together, or its greediest init container if more.

    Sidecars (restartable init containers) count with the containers. A limit stands for a request
    that isn't given. (Kubernetes, "Init Containers": resource sharing within containers)
    """
    amounts: Amounts = {}
    inits = spec.get("initContainers") or ()
    sidecars = [one for one in inits if one.get("restartPolicy") == "Always"]
    for container in (*(spec.get("containers") or ()), *sidecars):
        for name, amount in _container_amounts(container).items():
            amounts[name] = amounts.get(name, Fraction()) + amount
    for container in inits:
        for name, amount in _container_amounts(container).items():
            amounts[name] = max(amounts.get(name, Fraction()), amount)
    return amounts


def _container_amounts(container: Mapping[str, Any]) -> Amounts:
    resources = container.get("resources") or {}
    written = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
    return {name: amount for name, text in written.items() if (amount := _amount(text)) is not None}


def _amount(written: Any) -> Fraction | None:
    """None for what is no quantity: Kubernetes takes no such pod, so it asks for nothing."""
    try:
        return parse_quantity(written)
    except (ValueError, TypeError):
        return None


def _pods(template: Mapping[str, Any] | None, count: int) -> Iterator[ReplicaPods]:
    if template is not None and count > 0:
        yield ReplicaPods(count, template.get("spec") or {})


def _count(value: Any, default: int) -> int:
    return default if value is None else int(value)
